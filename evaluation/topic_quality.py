"""The quality of one model's topics by themselves: their exclusivity, and coherence on a corpus."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from .topics import top_terms


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
