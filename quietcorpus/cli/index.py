"""`quietcorpus index`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import click

import quietcorpus as qc

from .command import (
    TOKENIZERS,
    command,
    new_place_option,
    provenance_option,
    quiet_option,
    seed_option,
    text_option,
    tokenizer_options,
)


def _pool_encoder_option(default: str) -> Callable[[Any], Any]:
    """Return the option of a pool's encoder."""
    return click.option(
        "--encoder",
        default=default,
        show_default=True,
        help="A folder, or the name, of a sentence-transformers model, or lsa: one by the texts' "
        "own words, which the pool carries.",
    )


@click.group(short_help="Make word indexes, candidates, pools and vocabularies.")
def index() -> None:
    """Build and inspect artefacts that releases share: word indexes, candidates and pools.

    A word index holds words, their vectors and binary codes, for `kind: words`. Candidates are
    public documents, for `kind: sentence-embeddings`, and a pool holds public texts, for `kind:
    public-texts`. Each is built once.
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
@click.option(
    "--only",
    type=click.Choice(["codes"]),
    help="Leave out the vectors: a small index, only for the mechanism brr.",
)
@click.option("--words", help="The words of a FAISS index or of vectors in .npy, one per line.")
@click.option(
    "--search",
    metavar="ivf:lists=NUMBER",
    help="Add inverted lists, for releases by the approximate engine faiss-ivf.",
)
@click.option(
    "--rescale",
    metavar="MAP",
    help="Map the vectors, so that epsilon is per unit of another distance: "
    "covariance:lambda=NUMBER or information:power=NUMBER.",
)
@click.option(
    "--public-weights",
    help="For information: Parquet of term and weight, such as frequencies; they must be public.",
)
@tokenizer_options("texts", recorded=True)
@seed_option("the codes' and the lists' training")
@quiet_option
def build(source: str, output: str, **given: Any) -> Iterator[str]:
    """Make a word index from the vectors at SOURCE.

    SOURCE is word2vec text or binary (.vec, .txt, .bin, also with .gz), GloVe text, fastText's .vec
    or model (.bin), gensim KeyedVectors (.kv), NumPy's .npz (arrays `words` and `vectors`) or .npy,
    or FAISS's .faiss (Flat or IVF,Flat by Euclidean distance), on this machine or in an object
    store. The words of .npy and .faiss are in --words, or in a .txt of the same name and folder.
    The lists of IVF,Flat serve the engine faiss-ivf. Words that the tokeniser never yields
    (capitals, digits, punctuation, phrases) are left out.
    """
    qc.build_index(source, output, **given)
    yield f"index         {output}"
    yield from _shown(output, [])


_encoder_option = click.option(
    "--encoder",
    default="all-MiniLM-L6-v2",
    show_default=True,
    help="A folder, or the name, of a sentence-transformers model.",
)


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
@click.option("--id", help="A column of unique ids, by which candidates can be named.")
@click.option(
    "--keep", multiple=True, help="A column that is kept beside each candidate; may be given again."
)
@click.option(
    "--keep-text", is_flag=True, help="Keep the text of each candidate: releases can then carry it."
)
@_encoder_option
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

    SOURCE is a file, a glob or a saved Hugging Face dataset (Parquet, Arrow, JSON Lines, CSV or
    text), on this machine or in an object store. The command takes a fifth more documents than
    candidates, to measure with. It encodes sentences, and trains the recoder, on Ray: on the
    cluster that RAY_ADDRESS names, or on this machine. With --id, --keep and --keep-text, the file
    documents.parquet says which document each candidate is: `candidate`, `id`, the columns kept,
    and `text`.
    """
    manifest = qc.build_candidates(source, output, **given)
    yield f"candidates    {output}"
    yield from manifest.lines()


@command(
    "build-pool",
    group=index,
    short_help="Make a pool of public texts.",
    note="; nothing was written",
)
@click.argument("source")
@new_place_option
@provenance_option(
    "The provenance of the texts and of the encoder's training data; it must be public."
)
@text_option
@_pool_encoder_option("all-MiniLM-L6-v2")
@click.option(
    "--search",
    metavar="ivf:lists=NUMBER[,probes=NUMBER]",
    help="Make inverted lists, of which a document searches some (probes); more than 100,000 "
    "texts have them in any case. Unless given, probes are the fewest that find 95 % of the 20 "
    "nearest texts.",
)
@tokenizer_options("texts for the encoder lsa", recorded=True)
@seed_option("the lists' training")
@quiet_option
def build_pool(source: str, output: str, **given: Any) -> Iterator[str]:
    """Make a pool of the public texts at SOURCE, for `kind: public-texts`.

    SOURCE is a file, a glob or a saved Hugging Face dataset (Parquet, Arrow, JSON Lines, CSV or
    text), on this machine or in an object store. Each document is a text, up to 2,000,000 of them.
    The command leaves out empty texts, and those that equal or nearly equal an earlier one.
    """
    manifest = qc.build_pool(source, output, **given)
    yield f"pool          {output}"
    yield from manifest.lines()


@command(
    "narrow-pool",
    group=index,
    short_help="Narrow a pool to the lists that stood out in a release.",
    note="; nothing was written",
)
@click.argument("release")
@click.option("--pool", required=True, help="The pool that the release was made from.")
@new_place_option
@_pool_encoder_option("lsa")
@quiet_option
def narrow_pool(release: str, pool: str, output: str, **given: Any) -> Iterator[str]:
    """Narrow the pool of RELEASE, of `kind: public-texts`, to the lists that stood out in it.

    The noisy votes of a list, added up, must stand out from the noise. The texts of these lists
    become a pool of their own, with an encoder of their own, for another release at what is left
    of the budget. The pool carries the guarantee of the first release, whose cost is additional.
    """
    manifest = qc.narrow_pool(release, pool, output, **given)
    yield f"pool          {output}"
    yield from manifest.lines()


@command(
    "build-vocabulary",
    group=index,
    short_help="Make a public vocabulary of a language.",
    note="; nothing was written",
)
@new_place_option
@click.option("--language", required=True, help="The language, as a code, such as en, de or ja.")
@click.option(
    "--words",
    type=click.IntRange(1),
    help="The number of words, the most frequent ones; 20,000 by default, or all of fewer.",
)
@click.option(
    "--tokenizer",
    type=click.Choice(TOKENIZERS),
    help="The rule that finds the words of texts, as in the spec of a release; by default "
    "icu-words-v2 for a language whose words differ by it, else unicode-words-v2.",
)
def build_vocabulary(output: str, **given: Any) -> Iterator[str]:
    """Make a public vocabulary of the most frequent words of a language, from wordfreq.

    The list is `words.txt` in the folder, for `vocabulary: {public: ...}` in a spec. manifest.json
    names the source of the words and its licence.
    """
    made = qc.build_vocabulary(output, **given)
    yield f"vocabulary    {output}/words.txt"
    yield f"words         {made['words']:,}, {made['language']}, from {made['source']}"
    yield f"licence       {made['licence']}"
    rule = made["tokenizer"]
    if isinstance(rule, dict):
        yield f"in the spec   tokenizer: {{name: {rule['name']}, language: {rule['language']}}}"
    if "limit" in made:
        yield f"note          {made['limit']}"


@command("show", group=index, short_help="Print what an index or a set of candidates holds.")
@click.argument("index", metavar="INDEX")
@click.option(
    "--word", "words", multiple=True, help="A word whose neighbours to print; may be given again."
)
def show(index: str, words: Sequence[str]) -> Iterator[str]:
    """Verify the artefact at INDEX (a folder or an object-store URI), and print its content.

    For a word index, it prints the manifest, norms, and a few neighbours; for candidates, their
    description and, if they were built with --id or --keep, a line for each with its names.
    """
    yield from _shown(index, list(words))


def _shown(uri: str, words: list[str]) -> Iterator[str]:
    from quietcorpus.pipelines.prepare import showing as job

    yield from job.show(uri, words)
