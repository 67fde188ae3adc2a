"""Bounds by their definition: how often they are wrong, added up over all outcomes."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from evaluation.intervals import mean_over_blocks, most_allowed, over_draws, share_at_least

LEVELS = [0.31, 0.051, 1e-6]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("chance", [Fraction(1, 100), Fraction(1, 2), Fraction(19, 20)])
@pytest.mark.parametrize("draws", [1, 40, 1000])
def test_most_allowed_is_the_last_count_within_the_level(
    draws: int, chance: Fraction, level: float
) -> None:
    # Kills: off by one either way, the upper tail, `<` for `<=` at -1.
    most = most_allowed(draws, chance, level)
    below = sum(
        math.comb(draws, c) * chance**c * (1 - chance) ** (draws - c) for c in range(most + 1)
    )
    following = (
        math.comb(draws, most + 1) * chance ** (most + 1) * (1 - chance) ** (draws - most - 1)
    )
    assert below <= level < below + following


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("population", [None, 60, 25])
def test_a_share_is_overstated_no_more_often_than_the_level(
    population: int | None, level: float
) -> None:
    # Kills: the two-sided level, the upper bound, count and sample shifted, binomial for
    # hypergeometric (which is not tight), and the share of the sample for that of the population.
    sample, counts = 20, np.arange(21)
    bounds = np.array([share_at_least(int(c), sample, level, population) for c in counts])
    if population is None:
        shares = np.linspace(0, 1, 301)
        chances = stats.binom.pmf(counts, sample, shares[:, None])
    else:
        shares = np.arange(population + 1) / population
        chances = stats.hypergeom.pmf(
            counts, population, np.arange(population + 1)[:, None], sample
        )
    wrong = np.where(bounds > shares[:, None] + 1e-12, chances, 0).sum(axis=1)
    assert wrong.max() <= level * (1 + 1e-9)
    assert (np.diff(bounds) > 0).all()
    # Control: it is the largest such bound. Where it is raised by a little, some share errs.
    raised = np.where(bounds + 0.05 > shares[:, None] + 1e-12, chances, 0).sum(axis=1)
    assert raised.max() > level


def test_everybody_is_counted_not_estimated() -> None:
    # Kills: a bound below the share itself where nobody was left out.
    for count in range(8):
        assert share_at_least(count, 7, 1e-3, 7) == count / 7


def test_blocks_of_one_size_give_students_interval_of_their_means() -> None:
    # Kills: the standard error of single values, n for n - 1, a one-sided quantile.
    generator = np.random.default_rng()
    means = generator.normal(size=9)
    values = (means[:, None] + generator.permuted([[-1.0, 0.0, 1.0]] * 9, axis=1)).ravel()
    low, high = mean_over_blocks(values, np.repeat(np.arange(9), 3), 0.9)
    expected = stats.t.interval(0.9, 8, means.mean(), stats.sem(means))
    np.testing.assert_allclose([low, high], expected)


def test_dependent_values_widen_the_interval() -> None:
    # Kills: blocks ignored. All values of a block are equal: 4 values count as one.
    values = np.repeat([0.0, 1.0, 0.0, 1.0], 4)
    low, high = mean_over_blocks(values, np.repeat(np.arange(4), 4), 0.95)
    alone_low, alone_high = mean_over_blocks(values, np.arange(16), 0.95)
    assert high - low > 2 * (alone_high - alone_low)


def test_one_block_says_nothing() -> None:
    # Kills: a division by zero, or a point taken for an interval.
    assert mean_over_blocks(np.ones(3), np.zeros(3, dtype=np.int64), 0.95) == (-math.inf, math.inf)


@pytest.mark.parametrize("draws", [3, 5])
def test_an_interval_over_draws_covers_as_often_as_it_says(draws: int) -> None:
    # The number covered of 20,000 is Binomial(20,000, .95), and outside the bounds with a chance
    # of at most 1e-6: within .0075 of it. Kills: the normal quantile, a one-sided one (covers
    # .9), n for n - 1 (covers .93), the spread of a draw for that of the mean.
    samples = np.random.default_rng().normal(7, 3, size=(20_000, draws))
    found = np.array([over_draws(sample, 0.95) for sample in samples])
    low, high = stats.binom.ppf([5e-7, 1 - 5e-7], 20_000, 0.95)
    assert low <= ((found[:, 0] <= 7) & (found[:, 1] >= 7)).sum() <= high
    # Control: with the normal quantile, .81 and .88 are covered.
    half = stats.norm.ppf(0.975) * stats.sem(samples, axis=1)
    assert (np.abs(samples.mean(axis=1) - 7) <= half).sum() < low


def test_an_interval_over_draws_is_students() -> None:
    # Kills: a confidence that is not passed on, draws in one block, an interval from one draw.
    draws = [0.3, 0.5, 0.35, 0.41]
    expected = stats.t.interval(0.8, 3, np.mean(draws), stats.sem(draws))
    np.testing.assert_allclose(over_draws(draws, 0.8), expected)
    assert over_draws([0.3], 0.8) == (-math.inf, math.inf)
    assert over_draws([], 0.8) == (-math.inf, math.inf)
