"""The command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import click

from pipelines.calibrate_bags_cli import calibrate_bags
from pipelines.calibrate_cli import calibrate_words
from pipelines.calibrate_sentences_cli import calibrate_sentences
from pipelines.command import engine_option, guarded
from pipelines.evidence.audit_cli import audit
from pipelines.evidence.evaluate_cli import evaluate
from pipelines.forks import forget_grpc
from pipelines.index_cli import index
from pipelines.ledger.cli import ledger
from pipelines.patience import be_patient
from pipelines.processor import prefer_avx512

if TYPE_CHECKING:
    from pipelines.card import Card


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="quietcorpus")
def main() -> None:
    """Release large private text corpora under differential privacy.

    A release is described by a YAML spec, made by `quietcorpus release`, and checked by
    `quietcorpus verify`. Releases of text need a word index, and those of embeddings candidates
    (`quietcorpus index`); `quietcorpus calibrate` says what an epsilon makes of public ones. Bad
    input ends with exit code 2 and one line that says what to change; an interruption with 130, and
    any other failure with 1. A failed run publishes nothing.

    \b
    Environment:
      QUIETCORPUS_MASTER_KEY       the master key, 64 hexadecimal digits (32 bytes)
      QUIETCORPUS_MASTER_KEY_FILE  or a file that holds it
    Without one, a fresh key is drawn, and the run cannot be repeated with the same noise.
    """
    prefer_avx512()
    forget_grpc()
    be_patient()


@main.command(
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
    if_exists: str,
    quiet: bool,
    log_level: str,
) -> None:
    """Make the release that SPEC describes.

    The spec is checked in full before anything is read, every record is privatised, and the
    release is published once all of it is made. By default everything runs in this process;
    --workers uses several, and Beam's own options, given after the spec, any other engine. A run
    that died is repeated by the same command with the same master key; with --if-exists=ok that
    succeeds, and does nothing, if the release is complete already.

    \b
      quietcorpus release spec.yaml
      quietcorpus release spec.yaml --workers 8
      quietcorpus release spec.yaml --runner=DataflowRunner --project=... --region=...
    """

    aftermath = "; nothing was published"

    def begins() -> None:
        nonlocal aftermath
        aftermath = "; the release may be published: run again, with --if-exists=ok"

    def run() -> tuple[str, Card, bool] | None:
        from pipelines.logs import configure_logging

        configure_logging(log_level)
        from pipelines.completed import complete
        from pipelines.engine import Engine, GraphIsValid
        from pipelines.reachable import check as check_places
        from pipelines.release import release as make
        from pipelines.spec import load_spec

        loaded = load_spec(spec)
        engine = Engine(beam_options, workers)
        check_places(loaded)
        card = complete(loaded) if if_exists == "ok" else None
        try:
            made = card or make(loaded, engine, begins, quiet=quiet)
            return loaded.output, made, card is not None
        except GraphIsValid:
            return None

    done = guarded(run, lambda: aftermath)
    if done is None:
        click.echo("graph     valid; nothing was run, and nothing was published")
        return
    output, card, existed = done
    click.echo(f"release   {output}{' (complete already; nothing was done)' if existed else ''}")
    _print_card(card)


@main.command(short_help="Check a release against its card.")
@click.argument("path")
@click.option("--ledger", "place", help="A ledger that must count this release, as its card says.")
def verify(path: str, place: str | None) -> None:
    """Check the release at PATH (a folder or an object-store URI).

    Every file's digest, row count and columns are compared with release.json, release.json with
    its schema, and files that it does not list are refused. Exit code 0 if all is as it says.
    """

    def run() -> Card:
        from pipelines.logs import configure_logging

        configure_logging("INFO")
        from pipelines.verify import verify as check

        card = check(path)
        if place is not None:
            from pipelines.ledger.check import verify_counted

            verify_counted(path, card, place)
        return card

    card = guarded(run)
    click.echo(f"verified  {path}: {len(card.files)} files are as release.json says")
    _print_card(card)


@main.command(short_help="Better documents from a release of noisy bins.")
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
    """Make a better release from RELEASE, a bag of words that was made with `include: [bins]`.

    What is known of the noise is used: a low-rank model is fitted to the noisy counts, which were
    clipped nowhere, and every document is drawn from what it tells. Whoever holds the release can
    do so, at no further cost: it takes no corpus and no key. A run that was stopped goes on where
    it was.
    """

    aftermath = "; nothing was published, and the same command goes on from here"

    def begins() -> None:
        nonlocal aftermath
        aftermath = "; the release may be published: see whether `quietcorpus verify` finds it"

    def run() -> Card:
        from pipelines.logs import configure_logging

        configure_logging("INFO")
        from pipelines.reconstruction.reconstruct import reconstruct as make
        from pipelines.spec_values import absolute

        return make(path, absolute(output), factors, begins, engine=engine, quiet=quiet)

    card = guarded(run, lambda: aftermath)
    click.echo(f"release   {output}")
    _print_card(card)


@main.group(short_help="What an epsilon means, on public data.")
def calibrate() -> None:
    """Say what an epsilon makes of public data, for each kind of release, before the run."""


def _print_card(card: Card) -> None:
    from pipelines.card import costs, total_cost

    stages = [f"{stage.stage} {costs(stage.parameters)}" for stage in card.budget.stages]
    click.echo(f"documents {card.counts.documents:,} ({card.counts.rejected:,} records rejected)")
    click.echo(f"guarantee {card.guarantee.statement}")
    click.echo(f"cost      {total_cost(card.budget.total)} ({' + '.join(stages)})")
    for other in card.budget.inherited:
        click.echo(f"and       for the data of its {other['artefact']}: {other['statement']}")


main.add_command(index)
main.add_command(ledger)
main.add_command(evaluate)
main.add_command(audit)
calibrate.add_command(calibrate_bags)
calibrate.add_command(calibrate_words)
calibrate.add_command(calibrate_sentences)


if __name__ == "__main__":
    main()
