"""Epsilons of equal effect: by hand, and where there is none."""

from __future__ import annotations

import math

import numpy as np
import pytest

from quietcorpus.evaluation.distances import epsilon_of, telling


def test_a_value_is_met_between_the_epsilons_around_it() -> None:
    # Kills: interpolation in epsilon rather than its logarithm, the other end, falling curves.
    assert epsilon_of(0.5, [1, 4, 16], [0, 0.25, 0.75]) == pytest.approx(8)
    assert epsilon_of(0.25, [1, 4, 16], [0, 0.25, 0.75]) == pytest.approx(4)
    assert epsilon_of(175, [1, 100], [200, 100]) == pytest.approx(100**0.25)
    assert epsilon_of(0.1, [2, 3, 5], [0.1, 0.1, 0.4]) == pytest.approx(3)


def test_of_several_epsilons_the_smallest_is_taken() -> None:
    found = epsilon_of(0.5, [1, math.e, math.e**2, math.e**3], [0, 1, 0.25, 1])
    assert found == pytest.approx(math.exp(0.5))


@pytest.mark.parametrize("value", [-0.1, 0.9])
def test_there_is_none_beyond_the_grid(value: float) -> None:
    # Kills: extrapolation, the nearest end taken instead.
    assert epsilon_of(value, [1, 4, 16], [0, 0.25, 0.75]) is None
    assert epsilon_of(value, [1], [value]) is None


def test_values_tell_if_half_of_the_words_lie_between_the_ends() -> None:
    # Kills: an end that counts as inside, a share above a half demanded.
    assert telling(np.array([0, 0, 1, 99]), 0, 100)
    assert not telling(np.array([0, 100, 100, 99]), 0, 100)
    assert not telling(np.array([1, 1, 1]), 1, 100)
