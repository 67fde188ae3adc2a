"""The optimal composition of budgets that were fixed beforehand."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import pytest

pytest.importorskip("dp_accounting")

from quietcorpus.mechanisms.composition import fixed_beforehand


def optimal(epsilon: float, times: int, delta: float) -> float:
    """The least epsilon, by the outcomes of so many randomised responses (Kairouz et al.)."""

    def excess(total: float) -> float:
        """Return the delta that a total needs: over outcomes, of probabilities' difference."""
        found = 0.0
        for kept in product((1, -1), repeat=times):
            loss = epsilon * sum(kept)
            likely = math.exp(sum(max(one, 0) * epsilon for one in kept))
            likely /= (1 + math.exp(epsilon)) ** times
            found += likely * max(0.0, 1 - math.exp(total - loss))
        return found

    low, high = 0.0, epsilon * times
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > delta else (low, middle)
    return high


@pytest.mark.parametrize(("epsilon", "times", "delta"), [(0.1, 10, 1e-3), (1.0, 5, 1e-2)])
def test_it_is_the_optimum_and_never_less(epsilon: float, times: int, delta: float) -> None:
    # Kills: the sum, advanced composition, losses rounded down.
    found = float(
        fixed_beforehand([(Fraction(str(epsilon)), Fraction(0))] * times, Fraction(delta))
    )
    expected = optimal(epsilon, times, delta)
    assert expected <= found <= expected + times * 1.1e-4
    assert found < epsilon * times


def test_it_is_at_most_the_sum_where_delta_allows_no_more() -> None:
    budgets = [(Fraction(1), Fraction(1, 10**6)), (Fraction(1, 2), Fraction(1, 10**6))]
    found = fixed_beforehand(budgets, Fraction(3, 10**6))
    assert Fraction(149, 100) < found <= Fraction(15, 10) + Fraction(3, 10**4)
    assert fixed_beforehand([], Fraction(1, 10)) == 0


def test_what_has_no_figure() -> None:
    with pytest.raises(ValueError, match="so small a delta"):
        fixed_beforehand([(Fraction(1), Fraction(1, 100))] * 2, Fraction(1, 1000))
    with pytest.raises(ValueError, match="more than 100"):
        fixed_beforehand([(Fraction(60), Fraction(0))] * 2, Fraction(1, 1000))
