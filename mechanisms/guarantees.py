"""Guarantees as values: what a mechanism promises, and how promises add up."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction


@dataclass(frozen=True)
class LimitedPrecision:
    """(N, epsilon, delta)-limited-precision privacy (Schofield et al., section 2).

    For every two corpora that are equal but for one document, and in that document differ by at
    most `precision` tokens (L1 distance of the bags of words), and for every set S of outputs,
    Pr[M(x) in S] <= exp(epsilon) Pr[M(x') in S] + delta.
    """

    precision: int
    epsilon: Fraction
    delta: Fraction = Fraction(0)

    definition = "limited-precision local privacy"
    unit = "a passage of one document"

    @property
    def adjacency(self) -> str:
        """What two inputs may differ in, in words."""
        return (
            "the same records at the same places of the same files, with the same kept columns, "
            "but for one document, whose bag of words changes by at most "
            f"{self.precision} in L1: {_tokens(self.precision)} added or removed, or "
            f"{_tokens(self.precision // 2)} replaced"
        )

    def __add__(self, other: LimitedPrecision) -> LimitedPrecision:
        """Sequential composition; raises ValueError where the precisions differ."""
        if self.precision != other.precision:
            raise ValueError("guarantees of different precision do not add")
        return LimitedPrecision(
            self.precision, self.epsilon + other.epsilon, self.delta + other.delta
        )


@dataclass(frozen=True)
class Spending:
    """One stage that spends budget, with the guarantee that it alone has."""

    stage: str
    guarantee: LimitedPrecision


def compose(spendings: Iterable[Spending]) -> LimitedPrecision:
    """The guarantee of all stages together, as exact rationals."""
    first, *rest = (spending.guarantee for spending in spendings)
    return sum(rest, start=first)


def round_up(value: Fraction) -> float:
    """The nearest float that is not below `value`: rounding errs against the publisher."""
    rounded = float(value)
    return rounded if Fraction(rounded) >= value else math.nextafter(rounded, math.inf)


def ceiling(value: Fraction, digits: int = 6) -> str:
    """`value` in at most `digits` significant decimal digits, never less than it."""
    context = Context(prec=digits, rounding=ROUND_CEILING)
    shown = context.divide(Decimal(value.numerator), Decimal(value.denominator)).normalize()
    return f"{shown:f}" if shown == 0 or shown.adjusted() >= -4 else f"{shown:e}"


def _tokens(count: int) -> str:
    return "1 token" if count == 1 else f"{count} tokens"
