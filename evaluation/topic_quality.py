"""The quality of one model's topics by themselves: their exclusivity, and coherence on a corpus."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.stats import rankdata

from quietcorpus.evaluation.topics import top_terms


def exclusivity(topic_terms: npt.NDArray[np.floating], count: int = 20) -> npt.NDArray[np.float64]:
    """Measure how frequent in their topic, and how exclusive to it, its likeliest terms are.

    It is the mean of FREX (Bischof and Airoldi 2012, section 2) at weight 1/2 over the `count`
    likeliest terms: the harmonic mean of two ranks within the topic, of the term's probability
    phi_tk, and of phi_tk / sum_j phi_jk, which is not shrunk. A rank is the share of terms whose
    value is no larger. Terms that no topic has are left out, so that unused vocabulary changes
    nothing.

    Args:
        topic_terms: float (T, V), non-negative, as of `fit_topics`.
        count: the number of terms of a topic.

    Returns:
        float64 (T,), above 0 and at most 1.

    Raises:
        ValueError: fewer than `count` terms have a probability.
    """
    totals = topic_terms.sum(axis=0, dtype=np.float64)
    phi = topic_terms[:, totals > 0].astype(np.float64)
    if not 0 < count <= phi.shape[1]:
        raise ValueError(
            f"{count} top terms are asked for, and {phi.shape[1]} terms are of any topic; "
            "name a number from 1 to that"
        )
    ranks = [
        rankdata(values, method="max", axis=1) / phi.shape[1]
        for values in (phi, phi / totals[totals > 0])
    ]
    frex = 2 / (1 / ranks[0] + 1 / ranks[1])
    scores: npt.NDArray[np.float64] = np.take_along_axis(frex, top_terms(phi, count), 1).mean(1)
    return scores


def coherence(counts: sp.csr_array, tops: npt.NDArray[np.int32]) -> npt.NDArray[np.float64]:
    """Measure how often the top terms of a topic occur in the same documents.

    It is the sum over m > l of log((D(v_m, v_l) + 1) / D(v_l)), D the number of documents with all
    of the terms (Mimno et al. 2011, section 4, "UMass"). Larger is better; a pair has log(2) at
    most.

    The paper takes topics and counts from one corpus, where D(v_l) is never 0. A pair whose v_l
    occurs in none of the n documents gets log(1 / n), the least that a pair can have, so that
    a topic gains nothing by terms that the corpus lacks.

    Args:
        counts: integers, shape (n, V); a document has the terms of positive count.
        tops: int32 (T, count), terms by falling probability, as of `top_terms`.

    Returns:
        float64 (T,), in nats.
    """
    presence = (counts > 0).astype(np.int64).tocsc()
    return np.array([_coherence(presence[:, top]) for top in tops])


def _coherence(presence: sp.csc_array) -> float:
    """Compute a topic's coherence from the presence of its terms, (n, count)."""
    together = (presence.T @ presence).toarray()
    later, earlier = np.tril_indices(len(together), -1)
    with_earlier = np.diag(together)[earlier]
    ratios = (together[later, earlier] + 1) / np.maximum(with_earlier, 1)
    return float(np.log(np.where(with_earlier > 0, ratios, 1 / presence.shape[0])).sum())
