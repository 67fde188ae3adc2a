"""The topical structure that a release of bags of words keeps, compared with the original.

Topics are those of latent Dirichlet allocation (Blei, Ng and Jordan 2003), fitted by collapsed
Gibbs sampling (Griffiths and Steyvers 2004) with tomotopy. The comparison is the one of LPLP
(Schofield, Yauney and Mimno): best-match Jaccard of top terms, document length, and density.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy import optimize


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
