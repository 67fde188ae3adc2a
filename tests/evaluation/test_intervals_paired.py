"""Differences of two shares of the same documents."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from scipy import optimize, stats

from quietcorpus.evaluation.intervals import of_difference, of_paired_difference, of_share

Right = npt.NDArray[np.bool_]


def documents(both: int, one: int, other: int, neither: int) -> tuple[Right, Right]:
    """Documents for which both hold, or one alone."""
    cells = np.repeat([3, 1, 2, 0], [both, one, other, neither])
    return (cells & 1) > 0, (cells & 2) > 0


def by_likelihood(one: int, other: int, size: int, difference: float) -> float:
    """Tango's statistic, with the share of `other` alone found by a search over the likelihood."""
    least = max(0.0, -difference)

    def unlikely(q: float) -> float:
        parts = ((one, q + difference), (other, q), (size - one - other, 1 - 2 * q - difference))
        return -sum(count * math.log(max(share, 1e-300)) for count, share in parts if count)

    found = optimize.minimize_scalar(
        unlikely, bounds=(least, (1 - difference) / 2), method="bounded", options={"xatol": 1e-12}
    )
    variance = size * (2 * found.x + difference - difference**2)
    return (one - other - size * difference) / math.sqrt(variance)


@pytest.mark.parametrize("cells", [(5, 7, 1, 8), (100, 17, 3, 180), (0, 4, 4, 12), (30, 9, 0, 1)])
def test_the_ends_are_what_the_score_test_just_does_not_reject(
    cells: tuple[int, int, int, int],
) -> None:
    # Against a likelihood that is maximised by search. Kills: one and other in one another's place,
    # the unrestricted variance (Wald), a one-sided quantile.
    value, low, high = of_paired_difference(*documents(*cells), 0.95)
    size = sum(cells)
    assert value == pytest.approx((cells[1] - cells[2]) / size)
    assert low < value < high
    quantile = stats.norm.ppf(0.975)
    assert by_likelihood(cells[1], cells[2], size, low) == pytest.approx(quantile, abs=1e-3)
    assert by_likelihood(cells[1], cells[2], size, high) == pytest.approx(-quantile, abs=1e-3)


def test_no_difference_is_mcnemars_test() -> None:
    # (b - c) / sqrt(b + c) = 1.96 is where zero is just left out.
    for one, other in ((12, 3), (9, 3), (11, 4), (25, 10)):
        _, low, _ = of_paired_difference(*documents(40, one, other, 60), 0.95)
        assert (low > 0) == ((one - other) / math.sqrt(one + other) > stats.norm.ppf(0.975))


def test_extremes_have_an_interval() -> None:
    # Kills: a search without a change of sign, an interval of no width.
    assert of_paired_difference(*documents(20, 0, 0, 30), 0.95)[1:] == pytest.approx(
        (-0.0713, 0.0713), abs=1e-3
    )
    value, low, high = of_paired_difference(*documents(0, 10, 0, 0), 0.95)
    assert (value, high) == (1, 1)
    assert 0.4 < low < 0.5
    assert of_paired_difference(*documents(0, 0, 10, 0), 0.95) == pytest.approx((-1, -1, -low))


@pytest.mark.parametrize("law", [(0.5, 0.1, 0.05, 0.35), (0.6, 0.02, 0.01, 0.37)])
def test_a_paired_interval_covers_as_often_as_it_says(law: tuple[float, ...]) -> None:
    # 2,000 samples of 80 documents; a chance of a miss of .065 at most is what the score interval
    # keeps to here, and more misses than the bound have a chance of 1e-6. Control: at 80 % it
    # misses more.
    true = law[1] - law[2]
    cells = np.random.default_rng().multinomial(80, law, 2_000)
    missed = {0.95: 0, 0.8: 0}
    for row in cells.tolist():
        for confidence in missed:
            _, low, high = of_paired_difference(*documents(*row), confidence)
            missed[confidence] += not low <= true <= high
    most = stats.binom.isf(1e-6, 2_000, 0.065)
    assert missed[0.95] <= most < missed[0.8]


def test_pairs_tell_what_two_intervals_do_not() -> None:
    # 17 documents that one alone gets right, and 4 that the other does, of 300. Control: intervals
    # that do not know of the pairs leave zero in.
    one, other = documents(150, 17, 4, 129)
    _, low, _ = of_paired_difference(one, other, 0.95)
    assert low > 0
    ends = [(right.mean(), *of_share(int(right.sum()), 300, 0.95)) for right in (one, other)]
    assert of_difference(*ends)[0] < 0
