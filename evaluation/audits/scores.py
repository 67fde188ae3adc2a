"""Scores: numbers computed from outputs, which define events.

They are chosen to show the traces of faults: too little noise (the numbers themselves), noise that
two documents share (their difference), floats that cannot take every value (Mironov: On
significance of the least significant bits for differential privacy, 2012), and outputs whose
numbers are names without a meaningful order (log-ratios learnt from a first part of the draws).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Outputs = npt.NDArray[np.number]
"""One output a row, (n, k), of any numbers."""

_NO_BITS = 2000.0  # above the exponent of every float
_PSEUDO_COUNT = 0.5  # of every value under each input, so that none has an infinite ratio


@dataclass(frozen=True)
class Score:
    """A number computed from each output: float64 (n,) of outputs (n, k).

    Attributes:
        name: the number's name, as the subject of a sentence.
        of: computes the number; a function of each row alone.
    """

    name: str
    of: Callable[[Outputs], npt.NDArray[np.float64]]


def scores(one: Outputs, other: Outputs) -> list[Score]:
    """Return the scores to try for outputs like these, which may be of either input.

    They are: each number; for two numbers or more, the part along the difference of the two means;
    for an even number of numbers, each of the second half less its counterpart in the first half;
    and for floats, the place of each number's lowest bit.
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


def learnt_scores(one: Outputs, other: Outputs) -> list[Score]:
    """Learn, for outputs of whole numbers, how much likelier each value is under `other`.

    A score is the logarithm of the ratio of a value's counts among these draws, and 0 for a value
    that is not among them. An event of such a score must be chosen on other draws: a value that
    occurred once would seem to identify its input for certain.
    """
    if np.issubdtype(one.dtype, np.floating):
        return []
    return [
        Score(f"the learnt log-ratio of number {j + 1}", _log_ratio(j, one[:, j], other[:, j]))
        for j in range(one.shape[1])
    ]


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


def _log_ratio(
    j: int, one: npt.NDArray[np.number], other: npt.NDArray[np.number]
) -> Callable[[Outputs], npt.NDArray[np.float64]]:
    values, places = np.unique(np.concatenate([one, other]), return_inverse=True)
    counts = [
        np.bincount(own, minlength=len(values)) + _PSEUDO_COUNT
        for own in (places[: len(one)], places[len(one) :])
    ]
    ratios = np.log(counts[1] / counts[0])

    def of(rows: Outputs) -> npt.NDArray[np.float64]:
        column = rows[:, j]
        near = np.minimum(np.searchsorted(values, column), len(values) - 1)
        found: npt.NDArray[np.float64] = np.where(values[near] == column, ratios[near], 0.0)
        return found

    return of
