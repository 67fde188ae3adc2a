"""Searches for the number of 4 significant digits that just keeps to a budget."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction


def within(spent: Fraction | None, epsilon: Fraction) -> bool:
    """Return whether a bound exists and keeps to `epsilon`."""
    return spent is not None and spent <= epsilon


def number(index: int) -> Fraction:
    """Return the number of 4 significant digits at `index`, in ascending order; 1.000 is at 0."""
    return (1000 + index % 9000) * Fraction(10) ** (index // 9000 - 3)


def index_of(value: Fraction) -> int:
    """Return the index of the largest number of 4 significant digits that is not above `value`."""
    power = 0
    while value < Fraction(10) ** power:
        power -= 1
    while value >= Fraction(10) ** (power + 1):
        power += 1
    return 9000 * power + math.floor(value / Fraction(10) ** (power - 3)) - 1000


def edge(spent: Callable[[int], Fraction | None], epsilon: Fraction, kept: int, passed: int) -> int:
    """Find the last index, on the way from `kept` to `passed`, that keeps to `epsilon`.

    It is found by the Illinois method on log(spent / epsilon), which needs few calls: each may
    take a second.
    """

    def excess(index: int) -> float:
        found = spent(index)
        if found is None or not epsilon or found > 100 * epsilon:
            return math.log(100)
        return math.log(max(float(found / epsilon), 0.01))

    below, above = min(excess(kept), 0.0), max(excess(passed), 1e-9)
    moved = 0
    while abs(passed - kept) > 1:
        low, high = sorted((kept, passed))
        guess = passed + round((kept - passed) * above / (above - below))
        guess = min(max(guess, low + 1), high - 1)
        if within(spent(guess), epsilon):
            kept, below = guess, min(excess(guess), 0.0)
            above, moved = above / 2 if moved < 0 else above, -1
        else:
            passed, above = guess, max(excess(guess), 1e-9)
            below, moved = below / 2 if moved > 0 else below, 1
    return kept
