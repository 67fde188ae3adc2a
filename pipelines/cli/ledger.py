"""`quietcorpus ledger`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import click

from quietcorpus import ledger as api
from quietcorpus.pipelines.cli.command import Work, command
from quietcorpus.pipelines.terminal.table import aligned

_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group(short_help="Count and cap the total cost of a corpus's releases.")
def ledger() -> None:
    """Count the total cost of the releases of one corpus, and keep it below a cap.

    A spec with `ledger: PLACE` reserves its budget there before anything is read, and spends it
    when its release is published. PLACE is a folder, or a prefix of an object store with
    conditional writes (s3://, gs://, azfs://). Many runs may use it at once.
    """


def _command(name: str, short_help: str, note: str = "") -> Callable[[Work], click.Command]:
    return command(name, group=ledger, short_help=short_help, note=note, log_level="WARNING")


@_command("init", "Open a ledger with its caps.", "; nothing was opened")
@click.argument("place")
@click.argument("caps", type=click.Path())
def init(place: str, caps: str) -> Iterator[str]:
    """Open a ledger at PLACE, with the corpus and the caps in the YAML file CAPS.

    The caps are final. Keep the ledger inside the trust boundary: whoever can write there can spend
    the budget.

    \b
      corpus: s3://raw/complaints
      caps:
        - {definition: limited-precision, precision: 10, epsilon: 20, delta: 1.0e-6}
        - {definition: metric, metric: euclidean, index: DIGEST, epsilon: 50}
        - {definition: sentence, epsilon: 30}
        - {definition: user, epsilon: 8, delta: 1.0e-5}
    """
    found = api.init(place, caps)
    yield f"opened    {found['ledger']}"
    yield from _accounts(found, as_json=False)


@_command("show", "Show the accounts: used, left, and by which releases.")
@click.argument("place")
@_JSON
@click.option("--html", "as_html", is_flag=True, help="Print a page to be opened in a browser.")
def show(place: str, as_json: bool, as_html: bool) -> Iterator[str]:
    """Show what each account of the ledger at PLACE has used and has left.

    With --html, print a page that loads nothing and runs no script: what is left, what was spent by
    which release, and when.

    \b
      quietcorpus ledger show s3://ledger/complaints --html > ledger.html
    """
    if not as_html:
        yield from _accounts(api.show(place), as_json=as_json)
        return
    if as_json:
        from quietcorpus.transforms.errors import InputError

        raise InputError("--html: is another form than --json; leave one of them out")
    yield api.page(place).rstrip("\n")


@_command("history", "List every record, in order.")
@click.argument("place")
@_JSON
def history(place: str, as_json: bool) -> Iterator[str]:
    """List the records at PLACE, in order: what was reserved, spent and given back."""
    events = api.history(place)
    from quietcorpus.pipelines.ledger import tables

    yield from _json_or(tables.history_lines(events), events, as_json=as_json)


@_command("verify", "Check all records, and that cards agree.")
@click.argument("place")
@_JSON
def verify(place: str, as_json: bool) -> Iterator[str]:
    """Check all records at PLACE, their chain and seals, and the cards of the releases.

    The exit code is 2 if a record or a card is wrong, and 1 if a counted release is not at its
    place. If you move a release, leave its release.json there.
    """
    found = api.verify(place)
    from dataclasses import asdict

    from quietcorpus.pipelines.ledger.check import refuse

    rows = [("release", "result"), *((one.release, one.says) for one in found)]
    yield from _json_or(aligned(rows), [asdict(one) for one in found], as_json=as_json)
    refuse(found)
    if not as_json:
        yield "verified  all records are as they were written"


@_command("plan", "Compute what releases would cost together, before any run.")
@click.argument("specs", nargs=-1, required=True, type=click.Path())
@click.option(
    "--releases",
    type=click.IntRange(min=1),
    help="Compute what each of so many releases like that of one spec may spend.",
)
@click.option(
    "--per",
    type=click.Choice(["release"]),
    help="With --releases, the part of the budget that is computed.",
)
@_JSON
def plan(
    specs: tuple[str, ...], releases: int | None, per: str | None, as_json: bool
) -> Iterator[str]:
    """Compute what the releases of SPECS, in this order, would cost their ledgers.

    Nothing is reserved. The exit code is 3 if caps alone would refuse some of them, and 2 if
    anything else would refuse one.

    With --releases and one spec, compute what each of so many releases like it may spend, under
    each kind of account that its ledger could have been opened with.

    \b
      quietcorpus ledger plan --releases 52 --per release weekly.yaml
    """
    from quietcorpus.transforms.errors import InputError

    if releases is not None:
        if len(specs) != 1:
            raise InputError("--releases: is for one spec; name one, or leave it out")
        schedule = api.schedule(specs[0], releases)
        from quietcorpus.pipelines.ledger.schedule import lines

        yield from _json_or(lines(schedule), schedule, as_json=as_json)
        return
    if per is not None:
        raise InputError("--per: is of --releases; give their number, or leave it out")
    found = api.plan(specs)
    yield from _json_or(plan_lines(found), found, as_json=as_json)
    from quietcorpus.transforms.errors import CapReached

    refused = [one for one in found if one["refused"]]
    if refused:
        names = ", ".join(one["release"] for one in refused)
        if all(one["capped"] for one in refused):
            raise CapReached(f"ledger: {names} would pass a cap")
        raise InputError(f"ledger: {names} would be refused")


@_command(
    "release-reservation", "Give back the budget of a run that died.", "; nothing was changed"
)
@click.argument("place")
@click.argument("release")
@click.option("--reason", required=True, help="The reason, which the ledger keeps.")
def release_reservation(place: str, release: str, reason: str) -> Iterator[str]:
    """Give back what RELEASE has reserved at PLACE, if nothing of it was published.

    A run of RELEASE that is still under way will then publish nothing. Repeating the command of
    that run would go on with the reservation: give it back only if you do not want that. A run that
    ended by reporting what its mechanism had drawn, such as that no term reaches the threshold, has
    spent its budget.
    """
    api.release_reservation(place, release, reason)
    yield f"returned  what {release} had reserved"


def _accounts(content: dict[str, Any], *, as_json: bool) -> Iterator[str]:
    from quietcorpus.pipelines.ledger import tables

    yield from _json_or(tables.account_lines(content), content, as_json=as_json)


def _json_or(lines: Iterable[str], content: Any, *, as_json: bool) -> Iterable[str]:
    return [json.dumps(content, indent=2)] if as_json else lines


def plan_lines(planned: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield the plan as a table."""
    rows = [("spec", "release", "cost", "afterwards used")]
    for one in planned:
        after = "; ".join(f"{a['account']}: {a['text']}" for a in one["accounts"])
        said = "refused" if one["refused"] else "in the ledger already" if one["known"] else after
        rows.append((one["spec"], one["release"], one["cost"], said))
    yield from aligned(rows)
    for one in planned:
        if one["refused"]:
            yield f"refused   {one['release']}: {one['refused']}"
