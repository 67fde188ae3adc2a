"""The epsilon of a sum of rhos, by two curves: zero-concentrated privacy, and the Gaussian itself.

Of two neighbouring inputs a mechanism has two laws, P and Q. It is rho-zCDP if the Renyi divergence
of P from Q is at most rho times its order, for every order above 1, and so in the other direction
(Bun and Steinke 2016, definition 1.1). It is Gaussian of rho if P and Q can be made from two
normals of variance 1 whose means are sqrt(2 rho) apart, by one randomised map. The second implies
the first. A Gaussian mechanism of noise multiplier sigma is both, at rho = 1 / (2 sigma^2), and so
is whatever is made of its output, such as rounded sums.

Both curves hold in real numbers. They are computed in decimals of 40 digits, the same on every
machine, from bounds on the safe side; a margin of 1e-20 covers the decimals' own rounding.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction

_DIGITS = 40
_MARGIN = Decimal("1e-20")
_STEP = 10**12
_QUANTUM = 10**9
_TRIALS = 80
_GOLDEN = (Decimal(5).sqrt() - 1) / 2
_LEAST_POINT = Decimal("0.5")
_PI_BELOW = Decimal("3.1415926535897932384626433832795028841")

Curve = Callable[[Fraction, Fraction], Fraction]
"""From rho and delta to an epsilon that is never too small."""


def rho_of(noise_multiplier: Fraction) -> Fraction:
    """Return 1 / (2 sigma^2), the rho of a Gaussian of this noise multiplier, rounded up."""
    return rounded_up(1 / (2 * noise_multiplier**2))


def rounded_up(value: Fraction) -> Fraction:
    """Return the least multiple of 1e-12 that is not below `value`."""
    return Fraction(math.ceil(value * _STEP), _STEP)


@functools.lru_cache(maxsize=1 << 12)
def zcdp_epsilon(rho: Fraction, delta: Fraction) -> Fraction:
    """Return an epsilon such that rho-zCDP implies (epsilon, delta), rounded up.

    For every order a > 1, epsilon = a rho + ln(1 - 1 / a) - ln(a delta) / (a - 1) is one (Canonne,
    Kamath and Steinke 2020, proposition 12); the least over orders is sought, and the bound holds
    for whichever is found. Raises ValueError for a rho below 0, and a delta outside (0, 1).
    """
    _check(rho, delta)
    if not rho:
        return Fraction(0)
    with localcontext(prec=_DIGITS, rounding=ROUND_CEILING):
        own, surprise = _decimal(rho), -_decimal(delta).ln()

        def epsilon(power: Decimal) -> Decimal:
            beyond = power.exp()  # the order, less 1
            order = 1 + beyond
            return own * order + (beyond / order).ln() + (surprise - order.ln()) / beyond

        middle = (surprise / own).sqrt().ln()
        return _fraction(max(_least(epsilon, middle - 3, middle + 3), Decimal(0)))


@functools.lru_cache(maxsize=1 << 12)
def gaussian_epsilon(rho: Fraction, delta: Fraction) -> Fraction:
    """Return an epsilon such that a Gaussian of rho implies (epsilon, delta), rounded up.

    With m = sqrt(2 rho), x = epsilon / m - m / 2 and Mills' ratio R(x) = Q(x) / phi(x), the exact
    delta is Q(x) - exp(epsilon) Q(x + m) (Balle and Wang 2018, theorem 8), which is
    phi(x) (R(x) - R(x + m)), as exp(epsilon) phi(x + m) = phi(x). It falls as x grows, and x is
    sought from 1/2 on: where that is enough for delta, epsilon is a little too large.
    Raises ValueError as `zcdp_epsilon` does.
    """
    _check(rho, delta)
    if not rho:
        return Fraction(0)
    with localcontext(prec=_DIGITS, rounding=ROUND_CEILING):
        apart, allowed = (2 * _decimal(rho)).sqrt(), _decimal(delta) * (1 - _MARGIN)

        def within(point: Decimal) -> bool:
            ratio = _mills(point)[1] - _mills(point + apart)[0]
            height = (-point * point / 2).exp() / (2 * _PI_BELOW).sqrt()
            return height * ratio * (1 + _MARGIN) <= allowed

        low = high = _LEAST_POINT
        while not within(high):
            low, high = high, 2 * high
        while high - low > Decimal("1e-14"):
            middle = (low + high) / 2
            low, high = (low, middle) if within(middle) else (middle, high)
        return _fraction(apart * high + apart * apart / 2)


@functools.lru_cache(maxsize=1 << 8)
def largest_rho(curve: Curve, epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return the largest multiple of 1e-9 whose epsilon on the curve is at most `epsilon`.

    Raises ValueError if that is 0, and as the curve does.
    """

    def within(multiple: int) -> bool:
        return curve(Fraction(multiple, _QUANTUM), delta) <= epsilon

    low, high = 0, 1
    while within(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if within(middle) else (low, middle)
    if not low:
        raise ValueError("epsilon and delta leave room for no noise; give larger ones")
    return Fraction(low, _QUANTUM)


def _mills(point: Decimal) -> tuple[Decimal, Decimal]:
    """Compute bounds on Q(x) / phi(x), for x > 0, by two convergents of its continued fraction.

    1 / (x + 1 / (x + 2 / (x + 3 / ...))): all terms are positive, so that its convergents lie on
    either side of it in turn. The error falls as exp(-2 x sqrt(2 n)).
    """
    terms = int(600 / (point * point)) + 20
    ends = []
    for last in (terms, terms + 1):
        found = point
        for k in range(last, 0, -1):
            found = point + k / found
        ends.append(1 / found)
    return min(ends) * (1 - _MARGIN), max(ends) * (1 + _MARGIN)


def _least(function: Callable[[Decimal], Decimal], low: Decimal, high: Decimal) -> Decimal:
    """Return the least value that the golden section finds between two ends."""
    inner = [high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)]
    values = [function(point) for point in inner]
    for _ in range(_TRIALS):
        if values[0] <= values[1]:
            high, inner[1], values[1] = inner[1], inner[0], values[0]
            inner[0] = high - _GOLDEN * (high - low)
            values[0] = function(inner[0])
        else:
            low, inner[0], values[0] = inner[0], inner[1], values[1]
            inner[1] = low + _GOLDEN * (high - low)
            values[1] = function(inner[1])
    return min(values)


def _check(rho: Fraction, delta: Fraction) -> None:
    if rho < 0 or not 0 < delta < 1:
        raise ValueError("rho is 0 or more, and delta lies between 0 and 1")


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def _fraction(epsilon: Decimal) -> Fraction:
    return rounded_up(Fraction(epsilon) * (1 + Fraction(_MARGIN)))
