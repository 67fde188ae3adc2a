"""`quietcorpus calibrate`: its commands for each kind of release."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

import quietcorpus as qc

from .command import command


@command(
    "bag-of-words",
    api=lambda: qc.calibrate_bags,
    flags={"maps": "--map"},
    short_help="Find the best map and number of bins, on public text.",
)
@click.argument("source", required=False)
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
    api=lambda: qc.compare_indexes,
    short_help="Compare the effect of an epsilon on two indexes' common words.",
    note="; nothing was written",
)
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
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


@command(
    "public-texts",
    api=lambda: qc.calibrate_public_texts,
    flags={"pools": "--pool"},
    short_help="Find the best pool and number of votes, on public text.",
)
@click.argument("source")
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


@command(
    "sentence-embeddings",
    api=lambda: qc.calibrate_sentences,
    short_help="Find the best mechanism, on public text.",
)
@click.argument("candidates")
@click.argument("source")
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
    api=lambda: qc.calibrate_words,
    short_help="Measure the effect of an epsilon on an index's words.",
    note="; nothing was written",
)
@click.argument("index")
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
