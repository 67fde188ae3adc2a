"""Events that tell two inputs apart, looked for among draws of a mechanism's outputs under each.

An output is a row of numbers, and an event says of one number made of it (a score) that it is at
least, at most or exactly so much. Scores are made to see what faults leave: too little noise (the
numbers themselves), noise that two documents share (their difference), and floats that cannot take
every value (Mironov: On significance of the least significant bits for differential privacy, 2012).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy import stats

Outputs = npt.NDArray[np.number]
"""One output a row, (n, k), of any numbers."""

_THRESHOLDS = 400  # of a score with more values than that, evenly over its quantiles
_NO_BITS = 2000.0  # above the exponent of every float


@dataclass(frozen=True)
class Score:
    """A number that is made of each output: float64 (n,) of outputs (n, k).

    Attributes:
        name: what it is, as the subject of a sentence.
        of: how it is made; a function of each row alone.
    """

    name: str
    of: Callable[[Outputs], npt.NDArray[np.float64]]


@dataclass(frozen=True)
class Event:
    """That a score compares so with a threshold.

    `swapped` says that it is the second input under which it is the likelier.
    """

    score: Score
    comparison: Literal["at least", "at most", "exactly"]
    threshold: float
    swapped: bool

    def count(self, outputs: Outputs) -> int:
        """In how many of the outputs it happens."""
        values = self.score.of(outputs)
        match self.comparison:
            case "at least":
                return int((values >= self.threshold).sum())
            case "at most":
                return int((values <= self.threshold).sum())
            case _:
                return int((values == self.threshold).sum())

    def __str__(self) -> str:
        return f"{self.score.name} is {self.comparison} {self.threshold:.6g}"


def scores(one: Outputs, other: Outputs) -> list[Score]:
    """The scores that are tried for outputs like these, which may be of either input.

    Each number; from two numbers on what lies along the difference of the two means; where they are
    even in number, each of the second half less its fellow of the first; and for floats the place
    of each number's lowest bit.
    """
    size = one.shape[1]
    found = [Score(f"number {j + 1}", _column(j)) for j in range(size)]
    if size > 1:
        direction = other.mean(axis=0) - one.mean(axis=0)
        found.append(Score("the part along the difference of means", lambda rows: rows @ direction))
    if size % 2 == 0:
        half = size // 2
        found += [
            Score(f"number {half + j + 1} less number {j + 1}", _difference(half + j, j))
            for j in range(half)
        ]
    if np.issubdtype(one.dtype, np.floating):
        found += [
            Score(f"the power of two that is number {j + 1}'s lowest bit", _lowest_bit(j))
            for j in range(size)
        ]
    return found


def best_event(one: Outputs, other: Outputs, level: float, delta: float) -> Event:
    """The event that promises the largest bound of epsilon at `level` from draws like these.

    `one` and `other` are as many outputs, (n, k) both, and must not be those that the bound is
    then made of. What is promised is estimated (Wilson 1927), for speed.
    """
    best = max(
        (
            candidate
            for score in scores(one, other)
            for candidate in _candidates(score, score.of(one), score.of(other), level, delta)
        ),
        key=lambda candidate: candidate[0],
    )
    return best[1]


def _candidates(
    score: Score,
    one: npt.NDArray[np.float64],
    other: npt.NDArray[np.float64],
    level: float,
    delta: float,
) -> Iterator[tuple[float, Event]]:
    """What each comparison and each order of the inputs promises at its best threshold."""
    values = np.unique(np.concatenate([one, other]))
    few = len(values) <= _THRESHOLDS
    if not few:
        values = values[np.linspace(0, len(values) - 1, _THRESHOLDS).astype(np.int64)]
    below, upto = (
        [np.searchsorted(np.sort(draws), values, side=side) for draws in (one, other)]
        for side in ("left", "right")
    )
    counts: dict[Literal["at least", "at most", "exactly"], list[npt.NDArray[np.int64]]] = {
        "at least": [len(one) - own for own in below],
        "at most": upto,
    }
    if few:
        counts["exactly"] = [end - start for start, end in zip(below, upto, strict=True)]
    for comparison, (first, second) in counts.items():
        for swapped, hits, alarms in ((False, first, second), (True, second, first)):
            promised = _promised(hits, alarms, len(one), level, delta)
            place = int(promised.argmax())
            yield float(promised[place]), Event(score, comparison, float(values[place]), swapped)


def _promised(
    hits: npt.NDArray[np.int64],
    alarms: npt.NDArray[np.int64],
    draws: int,
    level: float,
    delta: float,
) -> npt.NDArray[np.float64]:
    """Ratios (power - delta) / false alarms by Wilson's bounds, which order events as logs do."""
    z = float(stats.norm.isf(level / 2))

    def bound(counts: npt.NDArray[np.int64], sign: int) -> npt.NDArray[np.float64]:
        shares = counts / draws
        spread = np.sqrt(shares * (1 - shares) / draws + (z / draws) ** 2 / 4)
        ends: npt.NDArray[np.float64] = (shares + z**2 / draws / 2 + sign * z * spread) / (
            1 + z**2 / draws
        )
        return ends

    ratios: npt.NDArray[np.float64] = (bound(hits, -1) - delta) / bound(alarms, 1)
    return ratios


def _column(j: int) -> Callable[[Outputs], npt.NDArray[np.float64]]:
    return lambda rows: rows[:, j].astype(np.float64)


def _difference(i: int, j: int) -> Callable[[Outputs], npt.NDArray[np.float64]]:
    return lambda rows: rows[:, i].astype(np.float64) - rows[:, j].astype(np.float64)


def _lowest_bit(j: int) -> Callable[[Outputs], npt.NDArray[np.float64]]:
    def of(rows: Outputs) -> npt.NDArray[np.float64]:
        mantissas, exponents = np.frexp(rows[:, j].astype(np.float64))
        whole = (mantissas * 2.0**53).astype(np.int64)
        lowest = whole & -whole
        places = np.log2(np.maximum(lowest, 1)) + exponents - 53
        found: npt.NDArray[np.float64] = np.where(whole == 0, _NO_BITS, places)
        return found

    return of
