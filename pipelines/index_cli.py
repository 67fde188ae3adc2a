"""`quietcorpus index`."""

from __future__ import annotations

from typing import Literal

import click

from pipelines.command import guarded


@click.group(short_help="Make word indexes, and look at them.")
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
@click.option(
    "--seed",
    default=1,
    show_default=True,
    type=click.IntRange(0),
    help="Of the training of the codes.",
)
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

    def run() -> None:
        from pipelines.logs import configure_logging

        configure_logging("INFO")
        from pipelines import index as job

        job.build(source, output, provenance=provenance, guarantee=guarantee, bits=bits, seed=seed)

    guarded(run, lambda: "; nothing was written")
    click.echo(f"index         {output}")
    _show(output, [])


@index.command("show", short_help="Print an index's manifest, a few neighbours and norms.")
@click.argument("uri", metavar="INDEX")
@click.option("--word", "words", multiple=True, help="A word whose neighbours are printed.")
def show(uri: str, words: tuple[str, ...]) -> None:
    """Verify the index at INDEX (a folder or an object-store URI) and say what is in it."""

    _show(uri, list(words))


def _show(uri: str, words: list[str]) -> None:
    def run() -> list[str]:
        from pipelines.logs import configure_logging

        configure_logging("INFO")
        from pipelines import index as job

        return job.show(uri, words)

    click.echo("\n".join(guarded(run)))
