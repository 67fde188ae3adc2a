"""`quietcorpus index`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import click

from quietcorpus import api
from quietcorpus.pipelines.cli.command import command
from quietcorpus.pipelines.cli.options import (
    new_place_option,
    provenance_option,
    quiet_option,
    seed_option,
    text_option,
)


@click.group(short_help="Make word indexes and candidates, and look at them.")
def index() -> None:
    """Build and inspect what releases share: word indexes, and candidates for documents.

    A word index holds words, their vectors and binary codes, for `kind: words`. Candidates are
    public documents, for `kind: sentence-embeddings`. Each is built once.
    """


@command(
    "build",
    group=index,
    short_help="Make an index from word vectors.",
    note="; nothing was written",
)
@click.argument("source")
@new_place_option
@provenance_option("Whether the vectors were made from public data alone.")
@click.option(
    "--guarantee",
    help="For private vectors: JSON with the guarantee under which they were made.",
)
@click.option(
    "--bits", default=256, show_default=True, help="The length of a code; a multiple of 64."
)
@seed_option("the codes' training")
def build(source: str, output: str, **given: Any) -> Iterator[str]:
    """Make a word index from the vectors at SOURCE.

    SOURCE is word2vec text or binary (.vec, .txt, .bin, also with .gz), GloVe text, gensim
    KeyedVectors (.kv), or NumPy's .npz (arrays `words` and `vectors`) or .npy (with a .txt of words
    in the same folder), on this machine or in an object store. Words that the tokeniser never
    yields (capitals, digits, punctuation, phrases) are left out.
    """
    api.build_index(source, output, **given)
    yield f"index         {output}"
    yield from _shown(output, [])


@command(
    "build-candidates",
    group=index,
    short_help="Make candidates of public documents.",
    note="; nothing was written",
)
@click.argument("source")
@new_place_option
@provenance_option(
    "The provenance of the documents and of the encoder's training data; it must be public."
)
@text_option
@click.option(
    "--encoder",
    default="all-MiniLM-L6-v2",
    show_default=True,
    help="A folder, or the name, of a sentence-transformers model.",
)
@click.option(
    "--language", default="en", show_default=True, help="The language of the text, as a code."
)
@click.option(
    "--candidates",
    default=5_000,
    show_default=True,
    type=click.IntRange(1),
    help="The number of candidates.",
)
@click.option(
    "--clusters",
    default=50,
    show_default=True,
    type=click.IntRange(2),
    help="The number of clusters of the documents' content.",
)
@click.option(
    "--projections",
    default=100,
    show_default=True,
    type=click.IntRange(1, 1000),
    help="The number of directions along which releases may measure depth.",
)
@click.option(
    "--least-sentences",
    default=8,
    show_default=True,
    type=click.IntRange(1),
    help="The fewest sentences of a document that is used.",
)
@click.option(
    "--most-sentences",
    default=64,
    show_default=True,
    type=click.IntRange(1, 1000),
    help="The number of sentences used of a document, from its beginning.",
)
@seed_option("all choices")
@quiet_option
def build_candidates(source: str, output: str, **given: Any) -> Iterator[str]:
    """Make candidates of the public documents at SOURCE, for `kind: sentence-embeddings`.

    SOURCE is a file, a glob or a folder of Parquet, JSON Lines, CSV or text, on this machine or in
    an object store. A fifth more documents than candidates are taken, to measure with. Sentences
    are encoded, and the recoder is trained, on Ray: on the cluster that RAY_ADDRESS names, else on
    this machine.
    """
    manifest = api.build_candidates(source, output, **given)
    yield f"candidates    {output}"
    yield from manifest.lines()


@command("show", group=index, short_help="Print an index's manifest, a few neighbours and norms.")
@click.argument("index", metavar="INDEX")
@click.option(
    "--word", "words", multiple=True, help="A word whose neighbours to print; may be given again."
)
def show(index: str, words: Sequence[str]) -> Iterator[str]:
    """Verify the index at INDEX (a folder or an object-store URI), and print its content."""
    yield from _shown(index, list(words))


def _shown(uri: str, words: list[str]) -> Iterator[str]:
    from quietcorpus.pipelines.artefacts import word_index as job

    yield from job.show(uri, words)
