"""`quietcorpus release`, `quietcorpus verify` and `quietcorpus reconstruct`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import click

from quietcorpus import api
from quietcorpus.pipelines.cli.options import engine_option
from quietcorpus.pipelines.terminal.failures import guarded
from quietcorpus.pipelines.terminal.logs import configure_logging

if TYPE_CHECKING:
    from quietcorpus.pipelines.card.model import Card

_NOT_PUBLISHED = "; nothing was published"


@click.command(
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    short_help="Make a release from a spec.",
)
@click.argument("spec", type=click.Path())
@click.argument("beam_options", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--workers", default=1, show_default=True, type=click.IntRange(1), help="Local processes."
)
@click.option(
    "--if-exists",
    type=click.Choice(["refuse", "ok"]),
    default="refuse",
    show_default=True,
    help="If the output holds a release of this id, mechanism and columns. The input of that one "
    "is not compared.",
)
@click.option(
    "--strict",
    is_flag=True,
    help="Refuse a guarantee that means little, which is warned of otherwise; not that of a "
    "release that exists.",
)
@click.option("--quiet", is_flag=True, help="No progress bar; plain log lines.")
@click.option(
    "--log-level",
    type=click.Choice(["DEBUG", "INFO", "WARNING", "ERROR"]),
    default="INFO",
    show_default=True,
    help="What is logged; DEBUG includes Beam's own log.",
)
def release(
    spec: str,
    beam_options: tuple[str, ...],
    workers: int,
    if_exists: Literal["refuse", "ok"],
    strict: bool,
    quiet: bool,
    log_level: str,
) -> None:
    """Make the release that SPEC describes.

    The spec is checked in full before anything is read. Every record is privatised, and the release
    is published only when all of it is made. By default everything runs in this process; --workers
    uses several processes, and Beam's own options, given after the spec, select any other engine.
    To repeat a run that died, give the same command with the same master key. If the release is
    already complete, the command with --if-exists=ok succeeds and does nothing.

    \b
      quietcorpus release spec.yaml
      quietcorpus release spec.yaml --workers 8
      quietcorpus release spec.yaml --runner=DataflowRunner --project=... --region=...
    """

    failure_note = _NOT_PUBLISHED

    def published() -> None:
        nonlocal failure_note
        failure_note = "; the release may be published: run again, with --if-exists=ok"

    def run() -> tuple[str, Card] | None:
        configure_logging(log_level)
        from quietcorpus.pipelines.engine.engine import GraphIsValid
        from quietcorpus.pipelines.spec.loading import load_spec

        loaded = load_spec(spec)
        try:
            card = api.release(
                loaded,
                workers=workers,
                beam_options=beam_options,
                if_exists=if_exists,
                strict=strict,
                progress=not quiet,
                on_publishing=published,
            )
        except GraphIsValid:
            return None
        return loaded.output, card

    done = guarded(run, lambda: failure_note)
    if done is None:
        click.echo("graph     valid; nothing was run, and nothing was published")
        return
    output, card = done
    existed = failure_note == _NOT_PUBLISHED
    click.echo(f"release   {output}{' (complete already; nothing was done)' if existed else ''}")
    _print_card(card)


@click.command(short_help="Check a release against its card.")
@click.argument("path")
@click.option("--ledger", "place", help="A ledger that must count this release, as its card says.")
def verify(path: str, place: str | None) -> None:
    """Check the release at PATH (a folder or an object-store URI).

    Every file's digest, row count and columns are compared with release.json, and release.json with
    its schema. Files that it does not list are refused. The exit code is 0 if everything matches.
    """

    def run() -> Card:
        configure_logging("INFO")
        return api.verify(path, ledger=place)

    card = guarded(run)
    click.echo(f"verified  {path}: {len(card.files)} files are as release.json says")
    _print_card(card)


@click.command(short_help="Better documents from a release of noisy bins.")
@click.argument("path", metavar="RELEASE")
@click.option("--output", required=True, help="Where the new release will be.")
@click.option(
    "--factors",
    default=30,
    show_default=True,
    type=click.IntRange(1),
    help="Topics of the model: more for less noise.",
)
@engine_option
@click.option("--quiet", is_flag=True, help="No progress bar; plain log lines.")
def reconstruct(
    path: str, output: str, factors: int, engine: Literal["local", "ray"], quiet: bool
) -> None:
    """Make a better release from RELEASE, bags of words that were made with `include: [bins]`.

    A low-rank model is fitted to the noisy counts, which are not clipped, with the known law of the
    noise; every document is then drawn from the model. Anyone who holds RELEASE can do this: it
    needs no corpus and no key, and costs no further budget. A stopped run goes on where it was.
    """

    failure_note = "; nothing was published, and the same command goes on from here"

    def published() -> None:
        nonlocal failure_note
        failure_note = "; the release may be published: see whether `quietcorpus verify` finds it"

    def run() -> Card:
        configure_logging("INFO")
        return api.reconstruct(
            path,
            output,
            factors=factors,
            engine=engine,
            progress=not quiet,
            on_publishing=published,
        )

    card = guarded(run, lambda: failure_note)
    click.echo(f"release   {output}")
    _print_card(card)


def _print_card(card: Card) -> None:
    from quietcorpus.pipelines.card.parameters import costs, total_cost

    stages = [f"{stage.stage} {costs(stage.parameters)}" for stage in card.budget.stages]
    click.echo(f"documents {card.counts.documents:,} ({card.counts.rejected:,} records rejected)")
    click.echo(f"guarantee {card.guarantee.statement}")
    click.echo(f"cost      {total_cost(card.budget.total)} ({' + '.join(stages)})")
    for other in card.budget.inherited:
        click.echo(f"and       for the data of its {other['artefact']}: {other['statement']}")
