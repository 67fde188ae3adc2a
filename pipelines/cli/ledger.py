"""`quietcorpus ledger`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import click

from quietcorpus import ledger as api
from quietcorpus.pipelines.terminal.failures import guarded
from quietcorpus.pipelines.terminal.logs import configure_logging
from quietcorpus.pipelines.terminal.table import aligned

_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group(short_help="What all releases of a corpus cost together, and the cap on it.")
def ledger() -> None:
    """Count the total cost of the releases of one corpus, and keep it below a cap.

    A spec with `ledger: PLACE` reserves its budget there before anything is read, and spends it
    when its release is published. PLACE is a folder, or a prefix of an object store with
    conditional writes (s3://, gs://, azfs://). Many runs may use it at once.
    """


@ledger.command("init", short_help="Open a ledger with its caps.")
@click.argument("place")
@click.argument("caps", type=click.Path())
def init(place: str, caps: str) -> None:
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

    found = guarded(_logged(lambda: api.init(place, caps)), lambda: "; nothing was opened")
    click.echo(f"opened    {found['ledger']}")
    _echo_accounts(found, as_json=False)


@ledger.command("show", short_help="The accounts: used, left, and by which releases.")
@click.argument("place")
@_JSON
def show(place: str, as_json: bool) -> None:
    """Show what each account of the ledger at PLACE has used and has left."""
    _echo_accounts(guarded(_logged(lambda: api.show(place))), as_json=as_json)


@ledger.command("history", short_help="Every record, in order.")
@click.argument("place")
@_JSON
def history(place: str, as_json: bool) -> None:
    """List the reservations, commitments and returns at PLACE, in order."""
    events = guarded(_logged(lambda: api.history(place)))
    from quietcorpus.pipelines.ledger import tables

    _echo(events, tables.history_lines(events), as_json=as_json)


@ledger.command("verify", short_help="Check all records, and that cards agree.")
@click.argument("place")
@_JSON
def verify(place: str, as_json: bool) -> None:
    """Check all records at PLACE, their chain and seals, and the cards of the releases.

    The exit code is 2 if a record or a card is wrong, and 1 if a counted release is not at its
    place. If you move a release, leave its release.json there.
    """

    found = guarded(_logged(lambda: api.verify(place)))
    from dataclasses import asdict

    from quietcorpus.pipelines.ledger.check import refuse

    rows = [("release", "result"), *((one.release, one.says) for one in found)]
    _echo([asdict(one) for one in found], aligned(rows), as_json=as_json)
    guarded(lambda: refuse(found))
    if not as_json:
        click.echo("verified  all records are as they were written")


@ledger.command("plan", short_help="What releases would cost together, before any run.")
@click.argument("specs", nargs=-1, required=True, type=click.Path())
@_JSON
def plan(specs: tuple[str, ...], as_json: bool) -> None:
    """Compute what the releases of SPECS, in this order, would cost their ledgers.

    Nothing is reserved. The exit code is 2 if one of them would be refused.
    """

    found = guarded(_logged(lambda: api.plan(specs)))
    _echo(found, plan_lines(found), as_json=as_json)

    def refuse() -> None:
        from quietcorpus.transforms.errors import InputError

        refused = [one["release"] for one in found if one["refused"]]
        if refused:
            raise InputError(f"ledger: {', '.join(refused)} would be refused")

    guarded(refuse)


@ledger.command("release-reservation", short_help="Give back the budget of a run that died.")
@click.argument("place")
@click.argument("release")
@click.option("--reason", required=True, help="Why; it stays in the ledger.")
def release_reservation(place: str, release: str, reason: str) -> None:
    """Give back what RELEASE has reserved at PLACE, if nothing of it was published.

    A run of RELEASE that is still under way will then publish nothing. Repeating the command of
    that run would go on with the reservation: give it back only if you do not want that. A run that
    ended by reporting what its mechanism had drawn, such as that no term reaches the threshold, has
    spent its budget.
    """
    guarded(
        _logged(lambda: api.release_reservation(place, release, reason)),
        lambda: "; nothing was changed",
    )
    click.echo(f"returned  what {release} had reserved")


def _logged(run: Callable[[], Any]) -> Callable[[], Any]:
    """Return a function that configures the logs, then runs."""

    def logged() -> Any:
        configure_logging("WARNING")
        return run()

    return logged


def _echo_accounts(content: dict[str, Any], *, as_json: bool) -> None:
    from quietcorpus.pipelines.ledger import tables

    _echo(content, tables.account_lines(content), as_json=as_json)


def _echo(content: Any, lines: Iterable[str], *, as_json: bool) -> None:
    for line in [json.dumps(content, indent=2)] if as_json else lines:
        click.echo(line)


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
