"""Topics of bags of words: their structure, their quality, and models that draw them.

Latent semantic analysis: the share of held-out documents that a few directions of terms hold.

Deerwester, Dumais, Furnas, Landauer and Harshman (1990), with the weights of Dumais (1991) less
their global part: log(1 + count), documents scaled to unit length, no idf. Only the directions are
therefore learnt from documents.

The topical structure that a release of bags of words keeps, compared with the original.

Topics are those of latent Dirichlet allocation (Blei, Ng and Jordan 2003), fitted by collapsed
Gibbs sampling (Griffiths and Steyvers 2004) with tomotopy. The comparison is the one of LPLP
(Schofield, Yauney and Mimno): best-match Jaccard of top terms, document length, and density.

Documents drawn from known topics: latent Dirichlet allocation (Blei, Ng and Jordan 2003).

Topics are logistic normal around the terms' frequencies (Blei and Lafferty 2007). With a deviation
of 2 they have as many terms, and differ from each other by as much, as twenty topics fitted to
complaints (7,156) or to film reviews (5,000): perplexities of 208 (fitted: 219) and of 677 (711)
terms, and squared distances from the frequencies of 3.7 (3.7) and of 6.7 (7.4) times the
frequencies' squares. The lengths of both corpora, and of commit messages, deviate by 0.7 to 1.1
times their mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy import optimize

_SPARSE = 8
"""Where fewer than one in `_SPARSE` cells of a matrix are filled, a sparse product is faster."""
_MOST_CELLS = 1 << 27  # a gigabyte


def weighted(counts: sp.csr_array) -> sp.csr_array:
    """Weight counts as log(1 + count), each row scaled to unit length; an empty row stays empty.

    Counts are non-negative, shape (n, V); the weights are float64 of the same shape.

    Raises:
        ValueError: a negative count.
    """
    weights = sp.csr_array(counts, dtype=np.float64, copy=True)
    weights.sum_duplicates()
    if (weights.data < 0).any():
        raise ValueError(f"a count is {weights.data.min():g}; clip the negative ones to 0 first")
    weights.data = np.log1p(weights.data)
    lengths = np.sqrt(weights.power(2).sum(axis=1))
    weights.data /= np.repeat(np.where(lengths > 0, lengths, 1), np.diff(weights.indptr))
    return weights


def directions(rows: sp.csr_array, dimensions: int, seed: int) -> npt.NDArray[np.float64]:
    """Find the right singular vectors of the largest singular values, float64 (V, dimensions).

    They are orthonormal.

    They are found by a randomised range finder, and exact where `dimensions` + 10 is no less than
    the smaller side of the matrix. Rows that noise has filled are multiplied as a dense matrix,
    which rounds otherwise.

    Args:
        rows: float64 (n, V), as of `weighted`.
        dimensions: 1 to min(n, V).
        seed: the seed of the range finder.

    Raises:
        ValueError: more dimensions than the matrix can have.
    """
    from sklearn.utils.extmath import randomized_svd

    if not 1 <= dimensions <= min(rows.shape):
        raise ValueError(
            f"{dimensions} dimensions are asked for; {rows.shape[0]} documents of "
            f"{rows.shape[1]} terms have 1 to {min(rows.shape)}"
        )
    cells = rows.shape[0] * rows.shape[1]
    dense = _SPARSE * rows.nnz > cells and cells <= _MOST_CELLS
    matrix = rows.toarray() if dense else rows
    _, _, found = randomized_svd(matrix, dimensions, random_state=seed)
    return np.asarray(found.T, dtype=np.float64)


def reconstruction_errors(
    counts: sp.csr_array, dimensions: int, folds: int, seed: int
) -> npt.NDArray[np.float64]:
    """Measure what the directions of all other folds miss of each fold, relative to its content.

    It is ||X - X V V'||_F^2 / ||X||_F^2, X the weighted documents of the fold and V the directions
    of the others: 0 if nothing is missed, 1 if everything is. Empty documents are left out before
    the folds are made, since they have no content to miss.

    Args:
        counts: non-negative, shape (n, V).
        dimensions: of the latent space; at most V, and the documents of all folds but one.
        folds: 2 or more, of random documents.
        seed: the seed of the folds and of the range finder.

    Returns:
        float64 (folds,). The folds share training documents, and so are not independent.

    Raises:
        ValueError: fewer documents than folds, or more dimensions than there can be.
    """
    from sklearn.model_selection import KFold

    rows = weighted(counts)
    rows = rows[rows.sum(axis=1) > 0]
    if not 2 <= folds <= rows.shape[0]:
        raise ValueError(
            f"{folds} folds of {rows.shape[0]} documents that are not empty; there must be at "
            "least 2, and a document for each"
        )
    splits = KFold(folds, shuffle=True, random_state=seed).split(np.empty(rows.shape[0]))
    return np.array(
        [_missed(rows[test], directions(rows[rest], dimensions, seed)) for rest, test in splits]
    )


def _missed(rows: sp.csr_array, basis: npt.NDArray[np.float64]) -> float:
    # For an orthonormal basis this is the error of the docstring, without a dense (n, V).
    return max(0.0, 1 - float(((rows @ basis) ** 2).sum() / (rows.data**2).sum()))


def fit_topics(
    counts: sp.csr_array, topics: int, *, iterations: int, seed: int
) -> npt.NDArray[np.float32]:
    """Fit the term distributions of the topics of a corpus.

    The priors are tomotopy's: alpha 0.1, re-estimated every 10 sweeps, and eta 0.01.

    Args:
        counts: non-negative integers, shape (n, V); tomotopy leaves empty documents out.
        topics: the number of topics T.
        iterations: sweeps of the Gibbs sampler.
        seed: the seed of the sampler; one thread is used, so that equal seeds give equal topics.

    Returns:
        float32 (T, V); every row sums to one, and a term that no document holds has zero.
    """
    import tomotopy  # of the `bench` extra: nothing else in the library needs it

    model = tomotopy.LDAModel(k=topics, seed=seed)
    names = [str(term) for term in range(counts.shape[1])]
    for start, end in zip(counts.indptr[:-1], counts.indptr[1:], strict=True):
        tokens = np.repeat(counts.indices[start:end], counts.data[start:end])
        model.add_doc([names[term] for term in tokens.tolist()])
    model.train(iterations, workers=1)
    used = np.array([int(name) for name in model.used_vocabs])
    fitted = np.zeros((topics, counts.shape[1]), dtype=np.float32)
    for topic in range(topics):
        fitted[topic, used] = model.get_topic_word_dist(topic)
    return fitted


def top_terms(topic_terms: npt.NDArray[np.floating], count: int = 20) -> npt.NDArray[np.int32]:
    """Return the `count` likeliest terms of each topic, likeliest first; ties to the lower number.

    `topic_terms` is float (T, V), as of `fit_topics`; the result is int32 (T, count).
    """
    return np.argsort(-topic_terms, axis=1, kind="stable")[:, :count].astype(np.int32)


def best_match_jaccard(reference: npt.NDArray[np.int32], other: npt.NDArray[np.int32]) -> float:
    """Average, over the reference's topics, the largest Jaccard index with any of the other's.

    It is not symmetric, and not one-to-one: several reference topics may match the same other
    topic, and a topic of `other` that resembles none costs nothing.

    Args:
        reference, other: int32 (T, count) and (T', count'); distinct term numbers in each row.
    """
    others = [frozenset(row) for row in other.tolist()]
    best = [
        max(len(topic & match) / len(topic | match) for match in others)
        for topic in (frozenset(row) for row in reference.tolist())
    ]
    return float(np.mean(best))


def paired(
    reference: npt.NDArray[np.int32], other: npt.NDArray[np.int32]
) -> list[tuple[int, int, float]]:
    """Pair topics one to one, so that their Jaccard indices add up to the most there is.

    By the Hungarian method (SciPy's `linear_sum_assignment`).

    Args:
        reference, other: int32 (T, count) and (T', count'); distinct term numbers in each row.

    Returns:
        A topic of each and their Jaccard index, the most alike first: min(T, T') of them.
    """
    sets = [[frozenset(row) for row in topics.tolist()] for topics in (reference, other)]
    alike = np.array([[len(a & b) / len(a | b) for b in sets[1]] for a in sets[0]])
    found = zip(*optimize.linear_sum_assignment(alike, maximize=True), strict=True)
    pairs = [(int(a), int(b), float(alike[a, b])) for a, b in found]
    return sorted(pairs, key=lambda pair: -pair[2])


def agreement(
    references: Sequence[npt.NDArray[np.int32]], others: Sequence[npt.NDArray[np.int32]]
) -> float:
    """Average `best_match_jaccard` of each reference with each other fit, itself left out."""
    return float(
        np.mean(
            [
                best_match_jaccard(reference, other)
                for reference in references
                for other in others
                if other is not reference
            ]
        )
    )


def length_ratio(original: sp.csr_array, released: sp.csr_array) -> float:
    """Divide the released by the original mean of tokens a document; integers (n, V), (n', V)."""
    return float(_per_document(released, released.sum()) / _per_document(original, original.sum()))


def density_ratio(original: sp.csr_array, released: sp.csr_array) -> float:
    """Divide the released by the original mean of distinct terms a document.

    Counts are integers (n, V) and (n', V), without duplicate entries; a stored zero is not a term.
    """
    return float(
        _per_document(released, released.count_nonzero())
        / _per_document(original, original.count_nonzero())
    )


def _per_document(counts: sp.csr_array, total: float) -> float:
    return total / int(counts.shape[0])


def exclusivity(topic_terms: npt.NDArray[np.floating], count: int = 20) -> npt.NDArray[np.float64]:
    """Measure how much the likeliest terms of a topic belong to it alone.

    It is the mean of phi_tk / sum_j phi_jk over the `count` likeliest terms k of topic t: the share
    of the term's probability, added up over all T topics, that the topic has. The mean over topics
    is 1 if no topic has another's top terms, and 1 / T, the least that it can be, if all topics are
    the same. (Let h_j be the count-th largest probability of topic j. A top term of t has h_t there
    or more, and h_j at most in each topic j whose top terms it is not among, so that the shares of
    all top terms add up to count * T / T or more.)

    Args:
        topic_terms: float (T, V), non-negative, as of `fit_topics`.
        count: the number of terms of a topic.

    Returns:
        float64 (T,), at most 1.

    Raises:
        ValueError: fewer than `count` terms have a probability.
    """
    totals = topic_terms.sum(axis=0, dtype=np.float64)
    if not 0 < count <= np.count_nonzero(totals):
        raise ValueError(
            f"{count} top terms are asked for, and {np.count_nonzero(totals)} terms are of any "
            "topic; name a number from 1 to that"
        )
    shares = topic_terms / np.where(totals > 0, totals, 1)
    scores: npt.NDArray[np.float64] = np.take_along_axis(
        shares, top_terms(topic_terms, count), 1
    ).mean(axis=1)
    return scores


def coherence(counts: sp.csr_array, tops: npt.NDArray[np.int32]) -> npt.NDArray[np.float64]:
    """Measure how often the top terms of a topic occur in the same documents.

    It is the mean over m > l of log((D(v_m, v_l) + 1) / D(v_l)), D the number of documents with all
    of the terms. Mimno et al. (2011, section 4, "UMass") have the sum over the pairs. Larger is
    better; log(2) is the most.

    The paper takes topics and counts from one corpus, where D(v_l) is never 0. A pair whose v_l
    occurs in none of the n documents gets log(1 / n), the least that a pair can have, so that
    a topic gains nothing by terms that the corpus lacks.

    Args:
        counts: integers, shape (n, V); a document has the terms of positive count.
        tops: int32 (T, count), two terms or more by falling probability, as of `top_terms`.

    Returns:
        float64 (T,), in nats a pair.
    """
    presence = (counts > 0).astype(np.int64).tocsc()
    return np.array([_coherence(presence[:, top]) for top in tops])


def _coherence(presence: sp.csc_array) -> float:
    """Compute a topic's coherence from the presence of its terms, (n, count)."""
    together = (presence.T @ presence).toarray()
    later, earlier = np.tril_indices(len(together), -1)
    with_earlier = np.diag(together)[earlier]
    ratios = (together[later, earlier] + 1) / np.maximum(with_earlier, 1)
    return float(np.log(np.where(with_earlier > 0, ratios, 1 / presence.shape[0])).mean())


_SHARE = 0.1
"""The parameter of each topic in the Dirichlet law of a document's topics."""
_DEVIATION = 2.0
"""The deviation of the logarithm of a term's share of a topic."""


class DrawnTopics(NamedTuple):
    """Documents, and the topics that they were drawn from.

    Attributes:
        counts: int32 (n, V).
        topics: float64 (T, V), of sum 1.
    """

    counts: sp.csr_array
    topics: npt.NDArray[np.float64]


def draw(
    weights: npt.NDArray[np.float64],
    documents: int,
    length: float,
    topics: int,
    generator: np.random.Generator,
) -> DrawnTopics:
    """Draw documents whose terms have, on average, the frequencies of `weights`.

    A document's shares of topics are Dirichlet of 0.1 each; its length is Poisson around an
    exponential law.

    Args:
        weights: non-negative, float64 (V,).
        documents: n.
        length: terms of a document, on average.
        topics: T.
        generator: the generator of all draws.
    """
    own = weights * np.exp(generator.normal(0, _DEVIATION, (topics, len(weights))))
    laws = own / own.sum(axis=1, keepdims=True)
    lengths = generator.poisson(generator.exponential(length, documents))
    of = np.repeat(np.arange(documents), lengths)
    shares = np.cumsum(generator.dirichlet(np.full(topics, _SHARE), documents), axis=1)
    topic = (generator.random(len(of))[:, None] > shares[of, :-1]).sum(axis=1)
    term = np.empty(len(of), np.int64)
    for number, law in enumerate(laws):
        mine = topic == number
        term[mine] = generator.choice(len(weights), mine.sum(), p=law)
    ones = np.ones(len(of), np.int32)
    counts = sp.csr_array((ones, (of, term)), shape=(documents, len(weights)))
    counts.sum_duplicates()
    return DrawnTopics(counts, laws)
