"""`quietcorpus calibrate`: its commands for each kind of release."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

import click

import quietcorpus as qc
from quietcorpus.mechanisms.words.registry import names

from ..calibration import TriedMap
from .command import (
    DeltaNumber,
    Number,
    Numbers,
    Wholes,
    command,
    draws_option,
    engine_option,
    eta_option,
    new_place_option,
    noise_option,
    quiet_option,
    seed_option,
    text_option,
    tokenizer_options,
    words_option,
    workers_option,
)


@command("bag-of-words", short_help="Find the best map and number of bins, on public text.")
@click.argument("source", required=False)
@click.option(
    "--vocabulary",
    help="The vocabulary of the planned release: text with one term per line, or Parquet.",
)
@click.option("--histogram", help="Instead of SOURCE: a release whose vocabulary has weights.")
@click.option(
    "--epsilons",
    required=True,
    type=Numbers(),
    help="The documents' epsilons, divided by N, such as 0.5,1,2.",
)
@click.option(
    "--bins",
    default="100,200,400,800,1600",
    show_default=True,
    type=Wholes(),
    help="The numbers of bins to try; those above the number of words are left out.",
)
@click.option(
    "--map",
    "maps",
    multiple=True,
    default=["frequency"],
    show_default=True,
    type=click.Choice(get_args(TriedMap)),
    help="A map to try; may be given again. `none` has a bin for every term.",
)
@tokenizer_options("SOURCE")
@text_option
@click.option(
    "--documents",
    type=click.IntRange(1),
    help="The number of documents that will be released; by default, all of SOURCE or of the "
    "histogram. All of them, times the number of bins, must fit in memory.",
)
@click.option(
    "--histogram-epsilon",
    default="0.5",
    show_default=True,
    type=Number(),
    help="The histogram's epsilon, also divided by N.",
)
@click.option(
    "--runs",
    default=5,
    show_default=True,
    type=click.IntRange(2),
    help="The number of runs, each with fresh noise.",
)
@seed_option("the noise")
@quiet_option
def calibrate_bags(source: str | None, **given: Any) -> Iterator[str]:
    """Find the best map and number of bins for a budget, with `quietcorpus reconstruct` in mind.

    This simulates releases of the public documents at SOURCE, reconstructs them, and compares 20
    topics of the results with the documents' own. Without public text, it draws documents of the
    same number and mean length from topics around the noisy histogram of a release:

    \b
      quietcorpus calibrate bag-of-words 'public/*.parquet' --vocabulary words.txt --epsilons 1,2
      quietcorpus calibrate bag-of-words --histogram releases/words --epsilons 1,2
    """
    from quietcorpus.pipelines.kinds.bag_of_words.calibrate import lines

    yield from lines(qc.calibrate_bags(source, **given))


@command(
    "compare",
    short_help="Compare the effect of an epsilon on two indexes' common words.",
    note="; nothing was written",
)
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@click.option(
    "--epsilons",
    required=True,
    type=Numbers(),
    help="The grid of values for both, such as 6,8,10,14,20, each per unit of distance.",
)
@new_place_option
@words_option
@draws_option
@eta_option
@seed_option("all draws")
@workers_option
@quiet_option
def calibrate_compare(first: str, second: str, output: str, **given: Any) -> Iterator[str]:
    """Measure what Madlib does to the words that the indexes A and B share, in each of them.

    The same epsilon gives a different level of privacy in another embedding. For every epsilon of
    the grid, this measures N_w and S_w as `quietcorpus calibrate words` does, the proxies of Renyi
    entropies that follow from them, and the epsilon of B at which words fare as in A. Both
    embeddings are reduced to the common words:

    \b
      quietcorpus calibrate compare glove-300 fasttext-300 --epsilons 5,8,12,18,27,40 \\
        --output compared
    """
    from quietcorpus.pipelines.kinds.words.compare_report import lines

    yield from lines(qc.compare_indexes(first, second, output, **given))


@command("public-texts", short_help="Find the best pool and number of votes, on public text.")
@click.argument("source")
@click.option(
    "--pool",
    "pools",
    required=True,
    multiple=True,
    help="A pool to try; may be given again.",
)
@click.option(
    "--epsilons", required=True, type=Numbers(), help="The epsilons of a document, such as 0.5,1."
)
@click.option("--delta", type=DeltaNumber(), help="The release's delta, for Gaussian noise.")
@noise_option
@click.option(
    "--nearest",
    default="20,100,500",
    show_default=True,
    type=Wholes(),
    help="The numbers of texts that a document votes for.",
)
@click.option(
    "--label",
    help="The column of a label, for strata: settings are then compared by a classifier.",
)
@text_option
@click.option(
    "--encoder",
    default="all-MiniLM-L6-v2",
    show_default=True,
    help="The encoder of pools that carry none: the folder or the name of a model.",
)
@click.option(
    "--documents",
    type=click.IntRange(1),
    help="The number of documents, or users, that will be released; by default half of SOURCE.",
)
@click.option(
    "--rounds",
    type=Number(),
    metavar="SHARE",
    help="Also try two releases: the first has this share of epsilon, and narrows the pool.",
)
@click.option(
    "--runs",
    default=5,
    show_default=True,
    type=click.IntRange(2),
    help="The number of runs, each with another split and fresh noise.",
)
@seed_option("splits and noise")
@quiet_option
def calibrate_public_texts(source: str, **given: Any) -> Iterator[str]:
    """Find the best pool, and the number of texts that a document votes for, for a budget.

    The public documents at SOURCE should be like the private ones, and must be in no pool. Half of
    them vote. The texts that a release would hold are compared with the other half: by their
    distance from the documents, or, with a label, by what a classifier learns from them:

    \b
      quietcorpus calibrate public-texts reviews.parquet --pool pool-a --pool pool-b \\
        --label sentiment --epsilons 0.5,1 --delta 1e-6
    """
    from quietcorpus.pipelines.kinds.public_texts.calibrate_report import lines

    yield from lines(qc.calibrate_public_texts(source, **given))


@command("sentence-embeddings", short_help="Find the best mechanism, on public text.")
@click.argument("candidates")
@click.argument("source")
@click.option(
    "--epsilons", required=True, type=Numbers(), help="The epsilons of a sentence, such as 3,6,10."
)
@text_option
@click.option(
    "--encoder",
    default="all-MiniLM-L6-v2",
    show_default=True,
    help="The candidates' own: a folder, or the name, of a sentence-transformers model.",
)
@click.option(
    "--documents",
    default=200,
    show_default=True,
    type=click.IntRange(10),
    help="The number of documents to use.",
)
@seed_option("the choice of documents and of all draws")
@quiet_option
def calibrate_sentences(candidates: str, source: str, **given: Any) -> Iterator[str]:
    """Compare mechanisms, with CANDIDATES, on the public documents at SOURCE.

    CANDIDATES must have been made from other documents. For every epsilon, mechanism and utility,
    the table gives the number of projections or directions with the highest agreement: the
    correlation of the released embeddings' cosines between documents with those of the documents'
    own, along the directions in which public documents differ. Beside it are the closeness of the
    released embedding to the document's own (the cosine of their deviations from the centre of
    public sentences) and the depth of the drawn candidate (its utility divided by the number of
    sentences). For deep-candidate, closeness and depth are exact expectations; all else is an
    average over draws.
    """
    from quietcorpus.pipelines.kinds.sentence_embeddings.calibrate import lines

    yield from lines(qc.calibrate_sentences(candidates, source, **given))


@command(
    "words",
    short_help="Measure the effect of an epsilon on an index's words.",
    note="; nothing was written",
)
@click.argument("index")
@click.option(
    "--mechanism",
    required=True,
    type=click.Choice(names()),
    help="The mechanism to measure.",
)
@click.option(
    "--epsilons",
    required=True,
    type=Numbers(),
    help="The grid of values, such as 6,8,10,14,20, each per unit of distance.",
)
@new_place_option
@words_option
@draws_option
@click.option(
    "--weights",
    help="Parquet of term and weight, to draw words by; public, such as that of a release.",
)
@eta_option
@click.option("--unchanged-at-most", type=Number(), help="Solve for epsilon: N_w is at most this.")
@click.option(
    "--set-size-at-least", type=click.IntRange(2), help="Solve for epsilon: S_w is at least this."
)
@click.option(
    "--share",
    default="0.95",
    show_default=True,
    type=Number(),
    help="The share of the words for which the solution must hold.",
)
@click.option(
    "--confidence",
    default=0.95,
    show_default=True,
    type=click.FloatRange(0, 1, True, True),
    help="The confidence of the solution.",
)
@click.option(
    "--truncation",
    type=Number(),
    help="For tem: the distance beyond which all words are equally likely; by default, by epsilon.",
)
@click.option(
    "--tuning",
    type=Number(),
    help="For vickrey: how much the second nearest word is preferred, above 0 and at most 1.",
)
@click.option(
    "--search",
    metavar="ENGINE[:probes=NUMBER]",
    help="The engine that a release would use, such as faiss-ivf:probes=32, also compared with "
    "exact search by recall and speed; by default exact.",
)
@click.option(
    "--document-epsilon",
    type=Number(),
    help="Solve for the epsilon of a word that keeps whole documents to this one.",
)
@click.option("--document-delta", type=DeltaNumber(), help="The delta of --document-epsilon.")
@click.option(
    "--document-words",
    type=click.IntRange(1),
    help="The most words that a document of --document-epsilon has.",
)
@seed_option("all draws")
@engine_option
@workers_option
@quiet_option
def calibrate_words(index: str, output: str, **given: Any) -> Iterator[str]:
    """Measure what a mechanism does to the words of INDEX, before anything is released.

    For every epsilon and word, this measures how often the word comes back unchanged (N_w), the
    size of the smallest set that holds its outputs except for a probability of eta (S_w), and the
    number of different outputs. It also gives the distances to nearest words, and the matching
    epsilon of the other mechanism. With --unchanged-at-most, --set-size-at-least or both, it finds
    the smallest noise that meets them for a --share of the words, and validates it on fresh words
    and draws:

    \b
      quietcorpus calibrate words glove-300 --mechanism madlib --epsilons 6,8,10,14,20 \\
        --unchanged-at-most 0.5 --set-size-at-least 50 --output calibrated

    With --document-epsilon, --document-delta and --document-words, it finds the largest epsilon of
    a word at which documents of at most that many words keep to this epsilon and delta, whichever
    of their words are replaced.
    """
    from quietcorpus.pipelines.kinds.words.calibrate_report import lines

    yield from lines(qc.calibrate_words(index, output, **given))
