"""Conversion of a guarantee to inputs other than those that it is stated for."""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction

from .guarantees import LimitedPrecision

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
