"""Events that distinguish two inputs, searched for among draws of a mechanism's outputs under each.

An output is a row of numbers. An event compares one number computed from it (a score) with a
threshold: the score is at least, at most or exactly the threshold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy import stats

from .scores import Outputs, Score, learnt_scores, scores

_THRESHOLDS = 400  # of a score with more values: as many evenly spaced, as many most frequent

_ANGLES = np.linspace(0, math.pi / 2, 5)
"""Shares of the error between an event's two chances, of which the worst one is the promise."""

Comparison = Literal["at least", "at most", "exactly"]
_Counts = npt.NDArray[np.int64]
_Chances = npt.NDArray[np.float64]

Measure = Callable[[_Chances, _Chances], _Chances]
"""The privacy loss that an event shows, from its chances under the two inputs, float64 (n,) each.

It rises with the first chance and falls with the second; -inf where the event shows nothing.
"""


def log_ratio(delta: float) -> Measure:
    """Return the measure of (epsilon, delta)-differential privacy, log((p - delta) / q)."""

    def measure(p: _Chances, q: _Chances) -> _Chances:
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios: _Chances = np.log((p - delta) / q)
        return np.where(p > delta, ratios, -np.inf)

    return measure


def deviations(p: _Chances, q: _Chances) -> _Chances:
    """Compute mu of mu-Gaussian privacy (Dong, Roth and Su 2022), Phi^-1(p) - Phi^-1(q)."""
    shown = (p > 0) & (q < 1)
    apart: _Chances = stats.norm.ppf(np.where(shown, p, 0.5)) + stats.norm.isf(
        np.where(shown, q, 0.5)
    )
    return np.where(shown, apart, -np.inf)


@dataclass(frozen=True)
class Event:
    """The event that a score compares with a threshold as stated.

    `swapped` tells that the event is likelier under the second input.
    """

    score: Score
    comparison: Comparison
    threshold: float
    swapped: bool

    def count(self, outputs: Outputs) -> int:
        """Count the outputs in which the event happens."""
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


def best_event(one: Outputs, other: Outputs, level: float, measure: Measure) -> Event:
    """Find the event that promises the largest bound on a measure at `level` from such draws.

    `one` and `other` are equally many outputs, (n, k) both, and must not be the draws that the
    bound is computed from. The promised bound is estimated (Wilson 1927), for speed. For learnt
    scores it is estimated on the half of these draws that they were not learnt from.
    """
    half = len(one) // 2
    tried = [(score, one, other) for score in scores(one, other)]
    tried += [
        (score, one[half:], other[half:]) for score in learnt_scores(one[:half], other[:half])
    ]
    best = max(
        (
            candidate
            for score, *draws in tried
            for candidate in _candidates(score, *map(score.of, draws), level=level, measure=measure)
        ),
        key=lambda candidate: candidate[0],
    )
    return best[1]


def _candidates(
    score: Score,
    one: npt.NDArray[np.float64],
    other: npt.NDArray[np.float64],
    *,
    level: float,
    measure: Measure,
) -> Iterator[tuple[float, Event]]:
    """Yield the promise and event of each comparison and input order, at its best threshold."""
    values, times = np.unique(np.concatenate([one, other]), return_counts=True)
    frequent = values
    if len(values) > _THRESHOLDS:
        frequent = np.sort(values[np.argsort(times, kind="stable")[-_THRESHOLDS:]])
        values = values[np.linspace(0, len(values) - 1, _THRESHOLDS).astype(np.int64)]
    ordered = np.sort(one), np.sort(other)

    def upto(thresholds: npt.NDArray[np.float64], side: Literal["left", "right"]) -> list[_Counts]:
        return [np.searchsorted(draws, thresholds, side=side) for draws in ordered]

    comparisons: tuple[tuple[Comparison, npt.NDArray[np.float64], list[_Counts]], ...] = (
        ("at least", values, [len(one) - below for below in upto(values, "left")]),
        ("at most", values, upto(values, "right")),
        (
            "exactly",
            frequent,
            [
                end - start
                for start, end in zip(upto(frequent, "left"), upto(frequent, "right"), strict=True)
            ],
        ),
    )
    for comparison, thresholds, (first, second) in comparisons:
        for swapped, hits, alarms in ((False, first, second), (True, second, first)):
            promised = _promised(hits, alarms, len(one), level, measure)
            place = int(promised.argmax())
            threshold = float(thresholds[place])
            yield float(promised[place]), Event(score, comparison, threshold, swapped)


def _promised(
    hits: _Counts,
    alarms: _Counts,
    draws: int,
    level: float,
    measure: Measure,
) -> _Chances:
    """Estimate the bound from Wilson's, the least over ways to share the error between both."""
    z = float(stats.norm.isf(level))

    def bound(counts: _Counts, own: float) -> _Chances:
        shares = counts / draws
        spread = np.sqrt(shares * (1 - shares) / draws + (own / draws) ** 2 / 4)
        ends: _Chances = (shares + own**2 / draws / 2 + own * spread) / (1 + own**2 / draws)
        return np.clip(ends, 0.0, 1.0)

    promised: _Chances = np.min(
        [
            measure(bound(hits, -z * math.cos(angle)), bound(alarms, z * math.sin(angle)))
            for angle in _ANGLES
        ],
        axis=0,
    )
    return promised
