"""`quietcorpus ledger`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

from pipelines.command import guarded

if TYPE_CHECKING:
    from pipelines.ledger.book import Ledger

_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group(short_help="What all releases of a corpus cost together, and the cap on it.")
def ledger() -> None:
    """Count what the releases of one corpus cost together, and keep that below a cap.

    A spec with `ledger: PLACE` reserves its budget there before anything is read, and spends it as
    its release is published. PLACE is a folder, or a prefix of an object store with conditional
    writes (s3://, gs://, azfs://): many runs may use it at once.
    """


@ledger.command("init", short_help="Open a ledger with its caps.")
@click.argument("place")
@click.argument("caps", type=click.Path())
def init(place: str, caps: str) -> None:
    """Open a ledger at PLACE for the corpus and with the caps that the YAML file CAPS names.

    They stand from then on. The ledger belongs inside the trust boundary, and whoever can write
    there can spend.

    \b
      corpus: s3://raw/complaints
      caps:
        - {definition: limited-precision, precision: 10, epsilon: 20, delta: 1.0e-6}
        - {definition: metric, metric: euclidean, index: DIGEST, epsilon: 50}
        - {definition: sentence, epsilon: 30}
        - {definition: user, epsilon: 8, delta: 1.0e-5}
    """

    def run() -> Ledger:
        from pipelines.ledger.book import Ledger
        from pipelines.ledger.caps import load_terms

        terms = load_terms(caps)
        return Ledger.init(_ready(place, "write"), terms)

    opened = guarded(_logged(run), lambda: "; nothing was opened")
    click.echo(f"opened    {opened.uri}")
    _echo_accounts(opened, as_json=False)


@ledger.command("show", short_help="The accounts: used, left, and by which releases.")
@click.argument("place")
@_JSON
def show(place: str, as_json: bool) -> None:
    """Show what the accounts of the ledger at PLACE have left."""
    _echo_accounts(guarded(_logged(lambda: _open(place))), as_json=as_json)


@ledger.command("history", short_help="Every record, in order.")
@click.argument("place")
@_JSON
def history(place: str, as_json: bool) -> None:
    """List what was reserved, committed and given back at PLACE."""
    found = guarded(_logged(lambda: _open(place)))
    from pipelines.ledger import tables

    events = tables.history(found)
    _echo(events, tables.history_lines(events), as_json=as_json)


@ledger.command("verify", short_help="Check all records, and that cards agree.")
@click.argument("place")
@_JSON
def verify(place: str, as_json: bool) -> None:
    """Check every record at PLACE, their chain and seals, and the cards of the releases.

    A release that is not at its place any more is told, and is no fault. Exit code 2 for anything
    that is not as it was left.
    """

    def run() -> list[dict[str, Any]]:
        from dataclasses import asdict

        from pipelines.ledger.check import findings

        opened = _open(place)
        opened.check_identifiers()
        return [asdict(one) for one in findings(opened)]

    found = guarded(_logged(run))
    rows = [("release", "result"), *((one["release"], one["says"]) for one in found)]
    from pipelines.columns import aligned

    _echo(found, aligned(rows), as_json=as_json)

    def refuse() -> None:
        from transforms.errors import InputError

        wrong = [one for one in found if one["wrong"]]
        if wrong:
            raise InputError(
                f"ledger: {len(wrong)} of {len(found)} releases do not agree with it; "
                f"{wrong[0]['release']}: {wrong[0]['says']}"
            )

    guarded(refuse)
    if not as_json:
        click.echo("verified  all records are as they were written")


@ledger.command("plan", short_help="What releases would cost together, before any run.")
@click.argument("specs", nargs=-1, required=True, type=click.Path())
@_JSON
def plan(specs: tuple[str, ...], as_json: bool) -> None:
    """Say what the releases of SPECS, in this order, would cost their ledgers.

    Nothing is reserved. Exit code 2 if one of them would be refused.
    """

    def run() -> list[dict[str, Any]]:
        from pipelines.ledger.plan import plan as foresee

        return foresee(specs)

    found = guarded(_logged(run))
    from pipelines.ledger.plan import plan_lines

    _echo(found, plan_lines(found), as_json=as_json)

    def refuse() -> None:
        from transforms.errors import InputError

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

    A run of it that is still under way will publish nothing then. The same command as before would
    go on with the reservation: give it back only if that is not wanted.
    """
    guarded(
        _logged(lambda: _open(place, "write").cancel(release, reason)),
        lambda: "; nothing was changed",
    )
    click.echo(f"returned  what {release} had reserved")


def _logged(run: Callable[[], Any]) -> Callable[[], Any]:
    """With logs as other commands have them."""

    def logged() -> Any:
        from pipelines.logs import configure_logging

        configure_logging("WARNING")
        return run()

    return logged


def _ready(place: str, verb: str) -> str:
    """A ledger's place, whose store answers; raises InputError otherwise."""
    from apache_beam.io.filesystems import FileSystems
    from apache_beam.options.pipeline_options import PipelineOptions

    from pipelines import object_stores, reachable
    from pipelines.spec_values import absolute

    FileSystems.set_options(PipelineOptions([]))
    uri = absolute(place)
    if object_stores.is_supported(uri):
        reachable.require([reachable.Need("ledger", f"{uri}/record", verb)])
    return uri


def _open(place: str, verb: str = "list") -> Ledger:
    from pipelines.ledger.book import Ledger

    return Ledger.open(_ready(place, verb))


def _echo_accounts(found: Ledger, *, as_json: bool) -> None:
    from pipelines.ledger import tables

    content = tables.accounts(found)
    _echo(content, tables.account_lines(content), as_json=as_json)


def _echo(content: Any, lines: Iterable[str], *, as_json: bool) -> None:
    for line in [json.dumps(content, indent=2)] if as_json else lines:
        click.echo(line)
