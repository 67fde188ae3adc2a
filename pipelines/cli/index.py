"""`quietcorpus index`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import click

from quietcorpus import api
from quietcorpus.pipelines.terminal.failures import guarded
from quietcorpus.pipelines.terminal.logs import configure_logging

if TYPE_CHECKING:
    from quietcorpus.indexes.candidates import Manifest


@click.group(short_help="Make word indexes and candidates, and look at them.")
def index() -> None:
    """Build and inspect what releases share: word indexes, and candidates for documents.

    A word index holds words, their vectors and binary codes, for `kind: words`. Candidates are
    public documents, for `kind: sentence-embeddings`. Each is built once.
    """


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
    KeyedVectors (.kv), or NumPy's .npz (arrays `words` and `vectors`) or .npy (with a .txt of words
    in the same folder), on this machine or in an object store. Words that the tokeniser never
    yields (capitals, digits, punctuation, phrases) are left out.
    """

    def run() -> None:
        configure_logging("INFO")
        api.build_index(
            source, output, provenance=provenance, guarantee=guarantee, bits=bits, seed=seed
        )

    guarded(run, lambda: "; nothing was written")
    click.echo(f"index         {output}")
    _show(output, [])


@index.command("build-candidates", short_help="Make candidates of public documents.")
@click.argument("source")
@click.option("--output", required=True, help="A folder or an object-store URI, still empty.")
@click.option(
    "--provenance",
    required=True,
    type=click.Choice(["public", "private"]),
    help="Of the documents, and of what the encoder was trained on; must be public.",
)
@click.option("--text", default="text", show_default=True, help="The column of the text.")
@click.option(
    "--encoder",
    default="all-MiniLM-L6-v2",
    show_default=True,
    help="A folder, or the name, of a sentence-transformers model.",
)
@click.option("--language", default="en", show_default=True, help="Of the text, as a code.")
@click.option("--candidates", default=5_000, show_default=True, type=click.IntRange(1))
@click.option("--clusters", default=50, show_default=True, type=click.IntRange(2))
@click.option(
    "--projections",
    default=100,
    show_default=True,
    type=click.IntRange(1, 1000),
    help="Directions that releases may measure depth along.",
)
@click.option(
    "--least-sentences",
    default=8,
    show_default=True,
    type=click.IntRange(1),
    help="That a document must have to be used.",
)
@click.option(
    "--most-sentences",
    default=64,
    show_default=True,
    type=click.IntRange(1, 1000),
    help="Of a document that are used, from its beginning.",
)
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0))
def build_candidates(source: str, output: str, **given: Any) -> None:
    """Make candidates of the public documents at SOURCE, for `kind: sentence-embeddings`.

    SOURCE is a file, a glob or a folder of Parquet, JSON Lines, CSV or text, on this machine or in
    an object store. A fifth more documents than candidates are taken, to measure with. Sentences
    are encoded, and the recoder is trained, on Ray: on the cluster that RAY_ADDRESS names, else on
    this machine.
    """

    def run() -> Manifest:
        configure_logging("INFO")
        return api.build_candidates(source, output, **given)

    manifest = guarded(run, lambda: "; nothing was written")
    click.echo(f"candidates    {output}")
    click.echo("\n".join(manifest.lines()))


@index.command("show", short_help="Print an index's manifest, a few neighbours and norms.")
@click.argument("uri", metavar="INDEX")
@click.option("--word", "words", multiple=True, help="A word whose neighbours are printed.")
def show(uri: str, words: tuple[str, ...]) -> None:
    """Verify the index at INDEX (a folder or an object-store URI), and print what is in it."""

    _show(uri, list(words))


def _show(uri: str, words: list[str]) -> None:
    def run() -> list[str]:
        configure_logging("INFO")
        from quietcorpus.pipelines.artefacts import word_index as job

        return job.show(uri, words)

    click.echo("\n".join(guarded(run)))
