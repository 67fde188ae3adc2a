"""Recall on noisy queries, and the law of these queries.

Nothing is seeded but where equal seeds are the subject. A statistical assertion rejects a correct
implementation with probability at most ALPHA, and has a control that must be rejected.
"""

from __future__ import annotations

import numpy as np
import pytest
from noisy_queries import Array, brute, clustered
from scipy import stats

from quietcorpus.evaluation.calibration import noisy_queries, recall
from quietcorpus.indexes.search.euclidean import EuclideanSearch
from quietcorpus.indexes.search.protocol import Search

ALPHA = 1e-6


class Shifted:
    """A search that finds another word than the nearest one for the first `wrong` queries."""

    def __init__(self, search: Search, wrong: int, words: int) -> None:
        self._search, self._wrong, self._words = search, wrong, words

    def nearest(self, queries: Array) -> Array:
        found = self._search.nearest(queries).copy()
        found[: self._wrong] = (found[: self._wrong] + 1) % self._words
        return found


@pytest.mark.parametrize("wrong", [0, 7, 50])
def test_recall_is_the_share_of_equal_answers(wrong: int) -> None:
    # Kills: the share that differ, a share of the words instead of the queries, a search that is
    # compared with itself, an interval of another share.
    vectors = clustered(300, 5)
    queries = noisy_queries(vectors, 4.0, 50, np.random.SeedSequence())
    exact = EuclideanSearch(vectors)
    found = recall(Shifted(exact, wrong, len(vectors)), exact, queries)
    assert (found.found, found.queries, found.share) == (50 - wrong, 50, 1 - wrong / 50)
    expected = stats.binomtest(50 - wrong, 50).proportion_ci(0.95, "exact")
    assert found.interval == pytest.approx(tuple(expected), abs=1e-6)


def test_equal_seeds_give_equal_words_and_scaled_noise() -> None:
    # Kills: draws that no seed governs, noise that is drawn anew for each epsilon or multiplied by
    # it. Words on a wide lattice are told from their queries.
    vectors = (1000 * np.arange(20, dtype=np.float32))[:, None] + np.zeros((1, 3), np.float32)
    one, other = (noisy_queries(vectors, e, 200, np.random.SeedSequence(3)) for e in (2.0, 1.0))
    np.testing.assert_array_equal(one, noisy_queries(vectors, 2.0, 200, np.random.SeedSequence(3)))
    words = brute(vectors, one)
    np.testing.assert_array_equal(words, brute(vectors, other))
    np.testing.assert_allclose(2 * (one - vectors[words]), other - vectors[words], atol=0.01)
    assert (noisy_queries(vectors, 2.0, 200, np.random.SeedSequence(4)) != one).any()


def test_queries_are_words_drawn_alike_under_madlibs_noise() -> None:
    # Kills: each word once, some words alone, noise of another length than Gamma(d, 1 / epsilon)
    # or with no noise at all. Of 20,000 lengths, a scale that is wrong by a tenth has a statistic
    # near .06 (d = 3), where 1e-6 is rejected from .02 on.
    count, epsilon = 20_000, 2.0
    vectors = (1000 * np.arange(20, dtype=np.float32))[:, None] + np.zeros((1, 3), np.float32)
    queries = noisy_queries(vectors, epsilon, count, np.random.SeedSequence())
    words = brute(vectors, queries)
    drawn = np.bincount(words, minlength=len(vectors))
    assert stats.chisquare(drawn).pvalue > ALPHA
    lengths = np.linalg.norm(queries.astype(np.float64) - vectors[words], axis=1)
    law = stats.gamma(3, scale=1 / epsilon)
    assert stats.kstest(lengths, law.cdf).pvalue > ALPHA
    assert stats.kstest(1.1 * lengths, law.cdf).pvalue < ALPHA  # a control
