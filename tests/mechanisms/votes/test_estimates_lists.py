"""Lists of texts that stand out by the sums of noisy votes."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from quietcorpus.mechanisms.votes.estimates import stand_out

ALPHA = 1e-6


def test_a_list_stands_out_from_three_deviations_of_its_sum_on() -> None:
    # Two strata of lists of 1, 3, no and 2 texts: deviations 4 sqrt(2 n) of whole numbers. Kills: a
    # threshold of one text's noise, of one stratum's, above three deviations or at more, and lists
    # that are shifted, empty, or stand out by negative sums.
    sizes = np.array([1, 3, 0, 2], np.int64)
    deviation = Fraction(4)  # three deviations of the sums: 16.97, 29.39, 0 and 24

    def found(*lists: int) -> list[bool]:
        noisy = np.zeros((2, 6), np.int64)
        noisy[0, [0, 1, 4]] = lists
        noisy[1] += [5, 5, -3, 1, 2, -2]
        return stand_out(noisy, sizes, deviation).tolist()

    assert found(12, 27, 24) == [True, True, False, True]
    assert found(11, 26, 23) == [False, False, False, False]
    assert found(-30, -50, -60) == [False] * 4


def test_lists_that_nobody_votes_for_stand_out_as_rarely_as_texts() -> None:
    # A binomial test at alpha 1e-6: at the threshold without the root, or for one of the strata
    # only, over 400 of 30,000 would be found in place of 41 (power above .999999).
    generator = np.random.default_rng()
    sizes = generator.integers(1, 12, size=30_000)
    noisy = np.rint(generator.normal(0, 1000, (2, sizes.sum()))).astype(np.int64)
    chance = stats.norm.sf(3)

    def is_rare(noisy: np.ndarray) -> bool:
        count = int(stand_out(noisy, sizes, Fraction(1000)).sum())
        return bool(stats.binomtest(count, len(sizes), chance).pvalue > ALPHA)

    assert is_rare(noisy)
    assert not is_rare(noisy * 2)


def test_lists_of_other_texts_are_refused() -> None:
    with pytest.raises(ValueError, match="lists of 3 texts, and sums of 4"):
        stand_out(np.zeros((1, 4), np.int64), np.array([1, 2]), Fraction(1))
