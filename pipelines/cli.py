"""The command line."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, NoReturn, TypeVar

import click

if TYPE_CHECKING:
    from pipelines.card import Card

_T = TypeVar("_T")

_EXIT_BAD_INPUT = 2
_EXIT_FAILURE = 1


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="quietcorpus")
def main() -> None:
    """Release large private text corpora under differential privacy.

    A release is described by a YAML spec, made by `quietcorpus release`, and checked by
    `quietcorpus verify`. Bad input ends with exit code 2 and one line that says what to change;
    any other failure ends with exit code 1. A failed run publishes nothing.

    \b
    Environment:
      QUIETCORPUS_MASTER_KEY       the master key, 64 hexadecimal digits (32 bytes)
      QUIETCORPUS_MASTER_KEY_FILE  or a file that holds it
    Without one, a fresh key is drawn, and the run cannot be repeated with the same noise.
    """


@main.command(
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    short_help="Make a release from a spec.",
)
@click.argument("spec", type=click.Path())
@click.argument("beam_options", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--workers", default=1, show_default=True, type=click.IntRange(1), help="Local processes."
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
    spec: str, beam_options: tuple[str, ...], workers: int, quiet: bool, log_level: str
) -> None:
    """Make the release that SPEC describes.

    The spec is checked in full before anything is read, every record is privatised, and the
    release is published once all of it is made. By default everything runs in this process;
    --workers uses several, and Beam's own options, given after the spec, any other engine:

    \b
      quietcorpus release spec.yaml
      quietcorpus release spec.yaml --workers 8
      quietcorpus release spec.yaml --runner=DataflowRunner --project=... --region=...
    """

    def run() -> tuple[str, Card]:
        from pipelines.logs import configure_logging

        configure_logging(log_level)
        from pipelines.engine import Engine
        from pipelines.release import release as make
        from pipelines.spec import load_spec

        loaded = load_spec(spec)
        return loaded.output, make(loaded, Engine(beam_options, workers), quiet=quiet)

    output, card = _guarded(run, "; nothing was published")
    click.echo(f"release   {output}")
    _print_card(card)


@main.command(short_help="Check a release against its card.")
@click.argument("path")
def verify(path: str) -> None:
    """Check the release at PATH (a folder or an object-store URI).

    Every file's digest, row count and columns are compared with release.json, release.json with
    its schema, and files that it does not list are refused. Exit code 0 if all is as it says.
    """

    def run() -> Card:
        from pipelines.logs import configure_logging

        configure_logging("INFO")
        from pipelines.verify import verify as check

        return check(path)

    card = _guarded(run)
    click.echo(f"verified  {path}: {len(card.files)} files are as release.json says")
    _print_card(card)


@main.group(short_help="Make word indexes, and look at them.")
def index() -> None:
    """Word indexes: words, their vectors and binary codes, which `kind: words` needs."""


@index.command("build", short_help="Make an index from word vectors.")
@click.argument("source")
@click.option("--output", required=True, help="A folder or an object-store URI, still empty.")
@click.option(
    "--provenance",
    required=True,
    type=click.Choice(["public", "private"]),
    help="Whether the vectors were made from public data alone.",
)
@click.option(
    "--guarantee",
    help="For private vectors: JSON with the guarantee under which they were made.",
)
@click.option("--bits", default=256, show_default=True, help="Of a code; a multiple of 64.")
@click.option("--seed", default=1, show_default=True, help="Of the training of the codes.")
def build(
    source: str,
    output: str,
    provenance: Literal["public", "private"],
    guarantee: str | None,
    bits: int,
    seed: int,
) -> None:
    """Make a word index from the vectors at SOURCE.

    SOURCE is word2vec text or binary (.vec, .txt, .bin, also with .gz), GloVe text, gensim
    KeyedVectors (.kv), or NumPy's .npz (arrays `words` and `vectors`) or .npy (with a .txt of
    words beside it), on this machine or in an object store. Words that the tokeniser never yields
    (capitals, digits, punctuation, phrases) are left out.
    """

    def run() -> list[str]:
        from pipelines.logs import configure_logging

        configure_logging("INFO")
        from pipelines import index

        index.build(
            source, output, provenance=provenance, guarantee=guarantee, bits=bits, seed=seed
        )
        return index.show(output, [])

    lines = _guarded(run, "; nothing was written")
    click.echo("\n".join([f"index         {output}", *lines]))


@index.command("show", short_help="Print an index's manifest, a few neighbours and norms.")
@click.argument("uri", metavar="INDEX")
@click.option("--word", "words", multiple=True, help="A word whose neighbours are printed.")
def show(uri: str, words: tuple[str, ...]) -> None:
    """Verify the index at INDEX (a folder or an object-store URI) and say what is in it."""

    def run() -> list[str]:
        from pipelines.logs import configure_logging

        configure_logging("INFO")
        from pipelines import index

        return index.show(uri, list(words))

    click.echo("\n".join(_guarded(run)))


def _print_card(card: Card) -> None:
    from pipelines.card import costs

    stages = [f"{stage.stage} {costs(stage.parameters)}" for stage in card.budget.stages]
    total = card.budget.total
    click.echo(f"documents {card.counts.documents:,} ({card.counts.rejected:,} records rejected)")
    click.echo(f"guarantee {card.guarantee.statement}")
    precision = getattr(total, "precision", None)
    at = "" if precision is None else f" at N = {precision}"
    click.echo(f"cost      {costs(total)}{at} ({' + '.join(stages)})")


def _guarded(run: Callable[[], _T], aftermath: str = "") -> _T:
    """Turn every failure into one line and an exit code."""
    from transforms.errors import InputError, StageError

    # A scheduler ends a job with SIGTERM; like Ctrl-C, it must leave nothing behind.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return run()
    except InputError as error:
        _fail(str(error), _EXIT_BAD_INPUT)
    except KeyboardInterrupt:
        _fail(f"interrupted{aftermath}", _EXIT_BAD_INPUT)
    except StageError as error:
        _fail(f"{error}{aftermath}", _EXIT_FAILURE)
    except Exception as error:  # its message may quote private text, so only its type is shown
        _fail(f"unexpected {type(error).__name__}{aftermath}", _EXIT_FAILURE)


def _fail(message: str, code: int) -> NoReturn:
    click.echo(f"quietcorpus: error: {' '.join(message.split())}", err=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
