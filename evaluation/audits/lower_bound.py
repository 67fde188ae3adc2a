"""Lower bounds on epsilon, with confidence, from draws of a mechanism under two inputs.

Ding, Wang, Wang, Zhang and Kifer: Detecting violations of differential privacy (CCS 2018), and
Jagielski, Ullman and Oprea: Auditing differentially private machine learning (NeurIPS 2020): an
event is chosen on half of the draws, and its probabilities are bounded on the other half.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from scipy import stats

from quietcorpus.evaluation.audits.events import best_event
from quietcorpus.evaluation.audits.scores import Outputs
from quietcorpus.evaluation.intervals import share_at_least

Input = TypeVar("Input")
Draw = Callable[[Input, int], Outputs]
"""A mechanism under audit, which returns so many independent outputs for one input, (n, k)."""


@dataclass(frozen=True)
class LowerBound:
    """A lower bound that draws show.

    Attributes:
        epsilon: the bound, on epsilon or on a chance; 0 where nothing was shown.
        reach: the largest bound that so many draws could have shown.
        draws: the number of draws of each input.
        event: the event that the bound comes from, in words.
    """

    epsilon: float
    reach: float
    draws: int
    event: str


def epsilon_at_least(
    draw: Draw[Input], one: Input, other: Input, draws: int, level: float, delta: float = 0.0
) -> LowerBound:
    """Compute a lower bound on epsilon, from draws for neighbouring inputs `one` and `other`.

    If for every event S, Pr[M(one) in S] <= exp(epsilon) Pr[M(other) in S] + delta and the same
    with the two exchanged, the bound is above epsilon with a probability of at most `level`: the
    bound on each of the two probabilities (Clopper and Pearson 1934) errs with half of it.

    Raises ValueError for fewer than 4 draws, and for a level or a delta out of range.
    """
    check(draws, level)
    if not 0 <= delta < 1:
        raise ValueError(f"a delta of {delta} is not in [0, 1)")
    first, second = (np.asarray(draw(given, draws)) for given in (one, other))
    if first.ndim != 2 or first.shape != second.shape or len(first) != draws:
        raise ValueError(f"a mechanism under audit gives {draws} rows of one length for each input")
    half = draws // 2
    event = best_event(first[:half], second[:half], level, delta)
    hits, alarms = (event.count(rows[half:]) for rows in (first, second))
    if event.swapped:
        hits, alarms = alarms, hits
    held = draws - half
    return LowerBound(
        _bound(hits, alarms, held, level, delta),
        _bound(held, 0, held, level, delta),
        draws,
        f"{event}, likelier under the {'second' if event.swapped else 'first'} input",
    )


def chance_at_least(
    draw: Callable[[int], npt.NDArray[np.bool_]], draws: int, level: float
) -> LowerBound:
    """Compute a lower bound on the chance of an event, which `draw` reports: bool (draws,).

    The bound (Clopper and Pearson 1934) is above the chance with a probability of at most `level`.
    Raises ValueError as `epsilon_at_least` does for draws and levels.
    """
    check(draws, level)
    happened = int(np.asarray(draw(draws)).sum())
    return LowerBound(
        share_at_least(happened, draws, level),
        share_at_least(draws, draws, level),
        draws,
        f"it happened in {happened} draws",
    )


def check(draws: int, level: float) -> None:
    """Raise ValueError for too few draws, or for a level that is no probability."""
    if draws < 4:
        raise ValueError(f"{draws} draws are too few to choose an event and to test it; give more")
    if not 0 < level < 1:
        raise ValueError(f"a level of {level} is not between 0 and 1")


def _bound(hits: int, alarms: int, draws: int, level: float, delta: float) -> float:
    power = share_at_least(hits, draws, level / 2)
    false = 1 - share_at_least(draws - alarms, draws, level / 2)
    return max(0.0, math.log((power - delta) / false)) if power > delta else 0.0


def rate_at_least(lengths: npt.NDArray[np.float64], dimensions: int, level: float) -> float:
    """Compute a lower bound on epsilon in a density proportional to exp(-epsilon ||z||).

    `lengths`, float64 (n,), are those of n independent draws of z in so many dimensions. Each is
    Gamma(dimensions, 1 / epsilon), so their sum is Gamma(n dimensions, 1 / epsilon). For noise of
    that form the bound is above epsilon with a probability of `level`; about other noise it says
    nothing.
    """
    return float(stats.gamma.ppf(level, len(lengths) * dimensions) / lengths.sum())
