"""The optimal composition of budgets that were fixed beforehand."""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quietcorpus.mechanisms.accounting.composition import fixed_beforehand

Kind = tuple[str, str, int]
"""An epsilon, a delta, and how many budgets have them."""

ONE_KIND: list[Kind] = [(".02", "0", 3000)]
KINDS: dict[str, list[Kind]] = {
    "3,000 releases": ONE_KIND,
    "few": [(".5", "0", 7)],
    "large": [("3", "0", 20)],
    "with deltas": [(".1", "1e-18", 40), ("1", "0", 5)],
    "of three kinds": [(".3", "0", 12), (".07", "0", 9), ("2", "0", 3)],
}


def budgets_of(kinds: list[Kind]) -> list[tuple[Fraction, Fraction]]:
    return [(Fraction(one), Fraction(own)) for one, own, times in kinds for _ in range(times)]


def needed(kinds: list[Kind], epsilon: Fraction) -> Decimal:
    """The delta at an epsilon, by all outcomes of the randomised responses, in 60 digits."""
    with localcontext() as context:
        context.prec = 60
        whole = Decimal(epsilon.numerator) / Decimal(epsilon.denominator)
        told, outcomes = Decimal(1), {Decimal(0): Decimal(1)}
        for one, own, times in kinds:
            told *= (1 - Decimal(own)) ** times
            true = 1 / (1 + (-Decimal(one)).exp())
            more: Counter[Decimal] = Counter()
            for j in range(times + 1):
                chance = math.comb(times, j) * true**j * (1 - true) ** (times - j)
                for loss, before in outcomes.items():
                    more[loss + Decimal(one) * (2 * j - times)] += before * chance  # type: ignore[assignment]
            outcomes = dict(more)
        excess = sum(
            (
                chance * (1 - (whole - loss).exp())
                for loss, chance in outcomes.items()
                if loss > whole
            ),
            Decimal(0),
        )
        return 1 - told + told * excess


@pytest.mark.parametrize("delta", ["1e-6", "1e-14", "1e-15", "1e-100"])
@pytest.mark.parametrize("name", KINDS)
def test_it_is_the_optimum_and_never_less(name: str, delta: str) -> None:
    # Against sums in 60 digits. Kills: the sum, advanced composition, losses rounded down, small
    # probabilities that a Fourier transform loses (14 times the delta at 3,000 releases).
    budgets = budgets_of(KINDS[name])
    plain = sum(epsilon for epsilon, _ in budgets)
    if sum(own for _, own in budgets) > Fraction(delta):
        with pytest.raises(ValueError, match="so small a delta"):
            fixed_beforehand(budgets, Fraction(delta))
        return
    found = fixed_beforehand(budgets, Fraction(delta))
    assert found <= plain
    assert needed(KINDS[name], found) <= Decimal(delta) or found == plain
    assert needed(KINDS[name], found * Fraction(9998, 10000)) > Decimal(delta)


def test_3000_releases_at_a_small_delta() -> None:
    # Kills: 8.27868, of which the delta is 14 times as large; none at 1e-15.
    assert float(fixed_beforehand(budgets_of(ONE_KIND), Fraction("1e-14"))) == 8.66767
    assert float(fixed_beforehand(budgets_of(ONE_KIND), Fraction("1e-15"))) == 8.99044


def test_it_is_at_most_the_sum() -> None:
    # Kills: losses rounded up past the sum; a sum where delta does not cover the deltas.
    budgets = [(Fraction(1), Fraction(1, 10**6)), (Fraction(1, 2), Fraction(1, 10**6))]
    assert Fraction(149, 100) < fixed_beforehand(budgets, Fraction(3, 10**6)) <= Fraction(3, 2)
    assert fixed_beforehand(budgets, Fraction(2, 10**6)) == Fraction(3, 2)
    assert fixed_beforehand([(Fraction(1, 3), Fraction(0))] * 2, Fraction(1, 10**300)) == (
        Fraction(2, 3)
    )
    assert fixed_beforehand([(Fraction(60), Fraction(0))] * 2, Fraction(1, 1000)) <= 120
    assert fixed_beforehand([], Fraction(1, 10)) == 0
    assert fixed_beforehand([(Fraction(1, 10), Fraction(0))], Fraction(9, 10)) == 0


def test_what_has_no_figure() -> None:
    with pytest.raises(ValueError, match="so small a delta"):
        fixed_beforehand([(Fraction(1), Fraction(1, 100))] * 2, Fraction(1, 1000))


@settings(max_examples=30, deadline=None)
@given(
    epsilons=st.lists(st.integers(1, 300), min_size=1, max_size=6),
    power=st.integers(1, 40),
)
def test_no_epsilon_is_too_small(epsilons: list[int], power: int) -> None:
    # For any few budgets. Kills: an outcome that is left out, or counted for another.
    kinds: list[Kind] = [(str(Decimal(one) / 100), "0", 1) for one in epsilons]
    delta = Fraction(1, 10**power)
    found = fixed_beforehand(budgets_of(kinds), delta)
    assert needed(kinds, found) <= Decimal(1).scaleb(-power) or found == Fraction(
        sum(epsilons), 100
    )
