"""Composition of (epsilon, delta) guarantees whose budgets were fixed beforehand."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import scipy

from .guarantees import LimitedPrecision, ceiling, round_down, round_up

_POINTS = 1 << 17
_ROUNDS = 80
_MARGIN = 2.0**-20  # of probabilities: rounding of their logarithms, measured at up to 1e-9
_CUT = 1e-6  # the share of delta that is left to outcomes too rare to follow
_LEAST_DELTA = 1e-280  # smaller probabilities would be lost
Outcomes = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]
"""Privacy losses, ascending, and the probability of each."""


def fixed_beforehand(budgets: Sequence[tuple[Fraction, Fraction]], delta: Fraction) -> Fraction:
    """Return an upper bound on the epsilon, at delta, of budgets that were fixed beforehand.

    It is the optimal composition of (epsilon, delta) guarantees (Kairouz, Oh and Viswanath 2015):
    each is at worst a randomised response that also tells the answer with a chance of its delta.
    Equal budgets have a binomial number of answers that are true, without a grid. Others are put
    together on a grid, with losses rounded up. Only positive numbers are added, so that no
    probability is lost however small: a Fourier transform would lose those below 1e-12 or so. The
    result never exceeds the sum of the epsilons, which holds where delta covers the deltas' sum.

    It is not a bound for budgets that are chosen in the light of earlier outputs (Rogers et al.
    2016); the sums of these budgets are.

    Raises ValueError where delta does not cover the chance that the response reveals an answer.
    """
    plain = sum((epsilon for epsilon, _ in budgets), Fraction(0))
    holds = sum((own for _, own in budgets), Fraction(0)) <= delta
    told = -math.expm1(sum(math.log1p(-min(round_up(own), 1 - _MARGIN)) for _, own in budgets))
    told *= 1 + _MARGIN
    left = (round_down(delta) - told) / (1 - told) * (1 - _MARGIN)
    if left <= _LEAST_DELTA:
        if not holds:
            raise ValueError("no epsilon is enough for so small a delta")
        return plain
    found = Fraction(
        ceiling(Fraction(_epsilon(Counter(round_up(one) for one, _ in budgets), left)))
    )
    return min(found, plain) if holds else found


def _epsilon(budgets: Counter[float], delta: float) -> float:
    """Compute the least epsilon of pure guarantees, given with their numbers, at `delta`."""
    rare = delta * _CUT / max(1, len(budgets))
    # By Hoeffding's inequality; it only sets the grid, and what is beyond it is followed too.
    spread = math.sqrt(2 * -math.log(rare) * sum(n * one * one for one, n in budgets.items()))
    widest = min(spread, sum(n * one for one, n in budgets.items()))
    losses, chances = np.zeros(1), np.ones(1)
    lost = 0.0
    for epsilon, times in budgets.items():
        more = _answers(epsilon, times)
        if len(budgets) == 1:
            losses, chances = more
        else:
            losses, chances = _together((losses, chances), more, 2 * widest / _POINTS)
        losses, chances, cut = _without_rare((losses, chances), rare)
        lost += cut

    def exceeds(epsilon: float) -> bool:
        over = np.searchsorted(losses, epsilon, side="right")
        return lost - float(chances[over:] @ np.expm1(epsilon - losses[over:])) > delta

    low, high = 0.0, max(0.0, float(losses[-1]))
    if not exceeds(low):
        return low
    for _ in range(_ROUNDS):
        middle = (low + high) / 2
        low, high = (middle, high) if exceeds(middle) else (low, middle)
    return high


def _answers(epsilon: float, times: int) -> Outcomes:
    """Return the losses of `times` answers, each of which is true with odds of exp(epsilon)."""
    true = np.arange(times + 1.0)
    ways = (
        scipy.special.gammaln(times + 1)
        - scipy.special.gammaln(true + 1)
        - scipy.special.gammaln(times - true + 1)
    )
    # log(1 + exp(epsilon)) is between epsilon and epsilon + log 2.
    chances = np.exp(ways + true * epsilon - times * np.logaddexp(0, epsilon))
    return epsilon * (2 * true - times), chances


def _together(one: Outcomes, other: Outcomes, step: float) -> Outcomes:
    """Return the sums of two independent losses, each of which is rounded up to the grid."""
    places, steps = (np.ceil(losses / step).astype(np.int64) for losses in (one[0], other[0]))
    found = np.zeros(places[-1] - places[0] + steps[-1] - steps[0] + 1)
    dense = np.zeros(places[-1] - places[0] + 1)
    np.add.at(dense, places - places[0], one[1])
    for place, chance in zip((steps - steps[0]).tolist(), other[1].tolist(), strict=True):
        found[place : place + len(dense)] += chance * dense
    losses: npt.NDArray[np.float64] = step * (places[0] + steps[0] + np.arange(float(len(found))))
    return losses, found


def _without_rare(outcomes: Outcomes, rare: float) -> tuple[*Outcomes, float]:
    """Return the outcomes without the largest losses, of a chance of `rare`, and that chance.

    The smallest losses, of a chance of `rare`, count as the least of the others.
    """
    losses, chances = outcomes
    last = len(losses) - int(np.searchsorted(np.cumsum(chances[::-1]), rare))
    first = min(int(np.searchsorted(np.cumsum(chances), rare)), last - 1)
    kept = chances[first:last].copy()
    kept[0] += chances[:first].sum()
    return losses[first:last], kept, float(chances[last:].sum())


_DIGITS = 40
_LARGEST_EXPONENT = 10_000


def at_precision(guarantee: LimitedPrecision, precision: int) -> LimitedPrecision:
    """Derive what (N, epsilon, delta)-limited-precision privacy implies at another precision N'.

    Two bags that are at most N' apart in L1 are joined by k = ceil(N' / N) steps of at most N
    each, a token at a time, so that k steps of (epsilon, delta) chain to (k epsilon,
    delta (1 + e^epsilon + ... + e^((k - 1) epsilon))) (group privacy: Dwork and Roth 2014, theorem
    2.2; Vadhan 2017, lemma 2.2). The sum is bounded by k e^((k - 1) epsilon), rounded up. A smaller
    N' is within N already.

    Raises ValueError if delta would be 1 or more, which promises nothing.
    """
    steps = -(-precision // guarantee.precision)
    delta = guarantee.delta
    if steps > 1 and delta:
        exponent = (steps - 1) * guarantee.epsilon
        # With so large an exponent the delta exceeds 1 and promises nothing.
        small = exponent < _LARGEST_EXPONENT
        delta = delta * steps * _exp_above(exponent) if small else Fraction(1)
    if delta >= 1:
        raise ValueError(
            f"(N = {guarantee.precision}) with a delta promises nothing at N = {precision}"
        )
    return LimitedPrecision(precision, steps * guarantee.epsilon, delta)


def _exp_above(exponent: Fraction) -> Fraction:
    """Return an upper bound on e^exponent, for exponents from 0 on, the same on every machine."""
    with localcontext(prec=_DIGITS, rounding=ROUND_CEILING):
        quotient = Decimal(exponent.numerator) / Decimal(exponent.denominator)
        return Fraction(quotient.exp()) * (1 + Fraction(10, 10**_DIGITS))
