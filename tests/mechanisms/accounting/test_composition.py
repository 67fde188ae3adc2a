"""The optimal composition of budgets that were fixed beforehand."""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal, localcontext
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quietcorpus.mechanisms.accounting import composition
from quietcorpus.mechanisms.accounting.composition import at_precision, fixed_beforehand
from quietcorpus.mechanisms.accounting.guarantees import LimitedPrecision
from quietcorpus.mechanisms.noise.geometric import TwoSidedGeometric

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


# Group privacy from one precision to another: hand values, the sum it bounds, and real laws.


_DIGITS = 120
EPSILONS = st.one_of(
    st.fractions(Fraction(1, 10**12), 60),
    st.integers(-12, 6).map(lambda power: Fraction(10) ** power),
    st.integers(1, 10**9).map(lambda value: Fraction(value, 3 * 10**7)),
)
DELTAS = st.one_of(
    st.integers(1, 300).map(lambda power: Fraction(1, 10**power)),
    st.fractions(Fraction(1, 10**9), Fraction(1, 3)),
)
PRECISIONS = st.integers(1, 40)


def real(value: Fraction) -> mpmath.mpf:
    return mpmath.mpf(value.numerator) / value.denominator


@pytest.mark.parametrize(
    ("own", "other", "times"),
    [(2, 2, 1), (2, 1, 1), (2, 3, 2), (2, 4, 2), (2, 5, 3), (1, 7, 7), (10, 1, 1), (3, 10, 4)],
)
def test_epsilon_is_paid_once_a_step(own: int, other: int, times: int) -> None:
    # Kills: floor for ceil, one step too many at multiples, N and N' swapped, the quotient as it
    # is, less than epsilon at a smaller N', the old N in the answer, a delta out of nothing.
    epsilon = Fraction(7, 3)
    found = at_precision(LimitedPrecision(own, epsilon), other)
    assert found == LimitedPrecision(other, times * epsilon, Fraction(0))


@pytest.mark.parametrize("other", [1, 4, 5])
def test_within_its_own_precision_a_guarantee_stays_as_it_is(other: int) -> None:
    # Kills: a delta that is rounded up, or multiplied, where nothing is converted.
    own = LimitedPrecision(5, Fraction(1, 7), Fraction(1, 3))
    assert at_precision(own, other) == LimitedPrecision(other, own.epsilon, own.delta)


def test_delta_by_hand() -> None:
    # Kills: k for k - 1 in the exponent, the factor k left out.
    found = at_precision(LimitedPrecision(2, Fraction(1), Fraction(1, 10**6)), 6)
    assert found.epsilon == 3
    assert float(found.delta) == pytest.approx(3 * 7.38905609893065e-6, rel=1e-14)
    nothing = at_precision(LimitedPrecision(1, Fraction(0), Fraction(1, 100)), 9)
    assert nothing.epsilon == 0
    assert 0 <= nothing.delta - Fraction(9, 100) < Fraction(1, 10**35)


@settings(deadline=None, max_examples=300)
@given(PRECISIONS, PRECISIONS, EPSILONS, DELTAS)
def test_delta_is_above_the_sum_and_at_most_k_times_it(
    own: int, other: int, epsilon: Fraction, delta: Fraction
) -> None:
    # Kills: e^epsilon rounded down, a sum that ends early, an answer where there is none, none
    # where there is one.
    steps = -(-other // own)
    with mpmath.workdps(_DIGITS):
        terms = [real(delta) * mpmath.exp(real(i * epsilon)) for i in range(steps)]
        exact, slack = mpmath.fsum(terms), 1 + mpmath.mpf(10) ** -35
        try:
            found = real(at_precision(LimitedPrecision(own, epsilon, delta), other).delta)
        except ValueError:
            assert steps * terms[-1] * slack >= 1
        else:
            assert exact * (1 - mpmath.mpf(10) ** -100) <= found
            assert found <= steps * terms[-1] * slack
            assert found < 1


@pytest.mark.parametrize("thirds", range(2000, 2060))
def test_the_bound_is_rounded_up_in_its_last_digit(thirds: int) -> None:
    # Kills: an exponent that is rounded down or to the nearest, the guard factor left out.
    epsilon, delta = Fraction(thirds, 3), Fraction(1, 10**320)
    found = at_precision(LimitedPrecision(1, epsilon, delta), 2).delta
    with mpmath.workdps(400):
        exact = 2 * real(delta) * mpmath.exp(real(epsilon))
        assert exact < real(found) < exact * (1 + mpmath.mpf(10) ** -35)


@settings(deadline=None, max_examples=150)
@given(PRECISIONS, PRECISIONS, EPSILONS, DELTAS)
def test_more_is_never_less(own: int, other: int, epsilon: Fraction, delta: Fraction) -> None:
    # Kills: a bound that falls as N', epsilon or delta grow, or as N shrinks.
    def cost(
        own: int = own, other: int = other, epsilon: Fraction = epsilon, delta: Fraction = delta
    ) -> tuple[Fraction, Fraction]:
        try:
            found = at_precision(LimitedPrecision(own, epsilon, delta), other)
        except ValueError:
            return -(-other // own) * epsilon, Fraction(1)
        return found.epsilon, found.delta

    base = cost()
    larger = [cost(other=other + 1), cost(epsilon=2 * epsilon), cost(delta=(1 + delta) / 2)]
    if own > 1:
        larger.append(cost(own=own - 1))
    for more in larger:
        assert more[0] >= base[0]
        assert more[1] >= base[1]


@pytest.mark.parametrize(
    ("own", "other", "epsilon", "delta"),
    [
        (1, 2, Fraction(1, 10**12), Fraction(1, 2)),  # twice one half is one
        (1, 10, Fraction(5), Fraction(1, 10**6)),
        (1, 2, Fraction(10**6), Fraction(1, 10**300)),  # e^1000000 is no float
        (1, 10**6, Fraction(10**6), Fraction(1, 10**300)),
        (1, 2, Fraction(20_000), Fraction(1, 10**2)),
    ],
)
def test_a_delta_that_promises_nothing_is_refused(
    own: int, other: int, epsilon: Fraction, delta: Fraction
) -> None:
    # Kills: a delta that is cut off below 1, `>` for `>=`, an overflow.
    with pytest.raises(ValueError, match=f"promises nothing at N = {other}"):
        at_precision(LimitedPrecision(own, epsilon, delta), other)


def test_huge_exponents_are_counted() -> None:
    # Kills: floats, whose e^1000 is no number; a delta of zero that is multiplied all the same.
    found = at_precision(LimitedPrecision(1, Fraction(3000), Fraction(1, 10**4000)), 4)
    with mpmath.workdps(_DIGITS):
        exact = 4 * mpmath.exp(9000) / mpmath.mpf(10) ** 4000
        assert abs(real(found.delta) / exact - 1) < mpmath.mpf(10) ** -30
    pure = at_precision(LimitedPrecision(1, Fraction(10**6)), 10**4)
    assert pure == LimitedPrecision(10**4, Fraction(10**10))


@pytest.mark.parametrize("rate", [Fraction(1, 1000), Fraction(1, 3), Fraction(5)], ids=str)
@pytest.mark.parametrize("own", [1, 2, 5])
def test_geometric_noise_never_loses_more_and_reaches_it(rate: Fraction, own: int) -> None:
    # The loss of noise of this rate at distance d is that of the event Z >= k, d further on.
    # Kills: floor for ceil, and an epsilon that is larger than it has to be at multiples of N.
    bits = 512
    law = TwoSidedGeometric(rate)
    guarantee = LimitedPrecision(own, rate * own)
    for other in range(1, 4 * own + 1):
        converted = at_precision(guarantee, other).epsilon
        with mpmath.workdps(_DIGITS):
            losses = []
            for distance in range(other + 1):
                near, far = law.tail(3, bits), law.tail(3 + distance, bits)
                losses.append(mpmath.log(mpmath.mpf(sum(near)) / sum(far)))
            tolerance = mpmath.mpf(10) ** -30
            assert max(losses) <= real(converted) + tolerance
            reached = abs(max(losses) - real(converted)) < tolerance
        assert reached == (other % own == 0)


@pytest.mark.parametrize("epsilon", [Fraction(1, 100), Fraction(1, 2), Fraction(3)], ids=str)
@pytest.mark.parametrize("steps", [1, 2, 5])
def test_noise_that_is_cut_off_has_no_more_delta(epsilon: Fraction, steps: int) -> None:
    # Two-sided geometric noise on -T, ..., T is (1, epsilon, delta)-private with delta = Pr[T]: its
    # delta at distance k is the sum of the theorem, so that nothing smaller may be charged.
    # Kills: delta * k without the powers, one power too few.
    furthest = 12
    with mpmath.workdps(_DIGITS):
        alpha = mpmath.exp(-real(epsilon))
        whole = mpmath.fsum(alpha ** abs(z) for z in range(-furthest, furthest + 1))

        def mass(value: int) -> mpmath.mpf:
            return alpha ** abs(value) / whole if abs(value) <= furthest else mpmath.mpf(0)

        def delta(distance: int) -> mpmath.mpf:
            """The largest Pr[S] - e^(distance * epsilon) Pr'[S]."""
            factor = mpmath.exp(real(distance * epsilon))
            reach = range(-furthest, furthest + distance + 1)
            return mpmath.fsum(max(0, mass(z) - factor * mass(z - distance)) for z in reach)

        own = Fraction(int(mpmath.ceil(delta(1) * 10**60)), 10**60)
        truth = delta(steps)
        try:
            found = real(at_precision(LimitedPrecision(1, epsilon, own), steps).delta)
        except ValueError:
            assert steps * real(own) * mpmath.exp(real((steps - 1) * epsilon)) >= 1
            return
        assert truth * (1 - mpmath.mpf(10) ** -30) <= found
        assert found <= steps * truth * (1 + mpmath.mpf(10) ** -20)


@pytest.mark.parametrize("budgets", [{0.1: 200}, {0.1: 30, 0.2: 20}], ids=str)
def test_outcomes_too_rare_to_follow_count_against_the_publisher(
    budgets: dict[float, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Kills: their chance, half of delta here, that is cut and then forgotten.
    followed = composition._epsilon(Counter(budgets), 1e-3)
    monkeypatch.setattr(composition, "_CUT", 0.5)
    assert composition._epsilon(Counter(budgets), 1e-3) > followed


@pytest.mark.parametrize("rare", [1e-9, 0.1, 0.3])
def test_no_chance_is_lost_with_rare_outcomes(rare: float) -> None:
    # Kills: the chance of the smallest losses, which grow by those of later budgets, left out.
    losses, chances = composition._answers(0.5, 40)
    left, kept, cut = composition._without_rare((losses, chances), rare)
    assert kept.sum() + cut == pytest.approx(1, abs=1e-12)
    assert cut <= rare
    for least in left:
        assert cut + kept[left >= least].sum() >= chances[losses >= least].sum() - 1e-12
