"""Lower bounds on epsilon, with confidence, from draws of a mechanism under two inputs.

Ding, Wang, Wang, Zhang and Kifer: Detecting violations of differential privacy (CCS 2018), and
Jagielski, Ullman and Oprea: Auditing differentially private machine learning (NeurIPS 2020): an
event is chosen on some of the draws, and its probabilities are bounded on the others, together.

Let an event happen X times in n draws of one input and Y times in n of the other, with chances p
and q. The tails P = Pr[Binomial(n, p) >= X] and Q = Pr[Binomial(n, q) <= Y] are independent, and
each is t or less with a probability of at most t. So v log(1 / P) + w log(1 / Q) is c or more with
a probability of at most (v exp(-c / v) - w exp(-c / w)) / (v - w), as a sum of two exponential
variables is (Good 1955; Fisher 1932 for v = w). The pairs (p, q) below c are a confidence region,
and the bound is the least that they allow. The weights are chosen with the event. Bounds of half of
the level on each chance (Clopper and Pearson 1934) are farther from the truth: the two errors add
up, where here their squares do.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from scipy import optimize, stats

from ..intervals import share_at_least
from .accounting import normal_epsilon
from .events import Measure, best_event, deviations, log_ratio
from .scores import Outputs

_CHOOSING = 4  # an event is chosen on one of this number of parts of the draws
_FEWEST = 2  # draws that an event is chosen on
_CELLS = 400  # of the region's edge
_WEIGHTS = tuple((min(1.0, 2.0**k), min(1.0, 2.0**-k)) for k in range(-3, 4))
"""Pairs (v, w) to choose from."""

Input = TypeVar("Input")
Draw = Callable[[Input, int], Outputs]
"""A mechanism under audit, which returns n independent outputs for one input, (n, k)."""


@dataclass(frozen=True)
class LowerBound:
    """A lower bound that draws show.

    Attributes:
        epsilon: the bound, on epsilon or on a chance; 0 where nothing was shown.
        reach: the largest bound that this number of draws could have shown.
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
    with the two exchanged, the bound is above epsilon with a probability of at most `level`.

    Raises ValueError for fewer than 4 draws, and for a level or a delta out of range.
    """
    if not 0 <= delta < 1:
        raise ValueError(f"a delta of {delta} is not in [0, 1)")
    return _at_least(draw, one, other, draws, level, log_ratio(delta))


def gaussian_epsilon_at_least(
    draw: Draw[Input], one: Input, other: Input, draws: int, level: float, delta: float
) -> LowerBound:
    """Compute a lower bound on epsilon at `delta` of Gaussian noise, from draws as above.

    Gaussian noise keeps to mu-Gaussian privacy (Dong, Roth and Su 2022), mu = sensitivity /
    deviation: no event distinguishes two inputs better than it would two normals that are mu
    deviations apart. The bound is the epsilon of a mu that is above the true one with a probability
    of at most `level`. It is larger than that of `epsilon_at_least`, which holds for any noise.

    Raises ValueError as `epsilon_at_least` does.
    """
    if not 0 < delta < 1:
        raise ValueError(f"a delta of {delta} is not between 0 and 1")
    found = _at_least(draw, one, other, draws, level, deviations)
    epsilon, reach = (normal_epsilon(apart, delta) for apart in (found.epsilon, found.reach))
    return replace(found, epsilon=epsilon, reach=reach)


def _at_least(
    draw: Draw[Input], one: Input, other: Input, draws: int, level: float, measure: Measure
) -> LowerBound:
    check(draws, level)
    first, second = (np.asarray(draw(given, draws)) for given in (one, other))
    if first.ndim != 2 or first.shape != second.shape or len(first) != draws:
        raise ValueError(f"a mechanism under audit gives {draws} rows of one length for each input")
    few = max(_FEWEST, draws // _CHOOSING)
    event = best_event(first[:few], second[:few], level, measure)
    likelier, rarer = (second, first) if event.swapped else (first, second)
    held = draws - few
    seen, alarmed = (event.count(part[:few]) * held // few for part in (likelier, rarer))
    weights = max(_WEIGHTS, key=lambda w: measure_at_least(seen, alarmed, held, level, measure, w))
    hits, alarms = (event.count(part[few:]) for part in (likelier, rarer))
    return LowerBound(
        measure_at_least(hits, alarms, held, level, measure, weights),
        max(measure_at_least(held, 0, held, level, measure, w) for w in _WEIGHTS),
        draws,
        f"{event}, likelier under the {'second' if event.swapped else 'first'} input",
    )


def measure_at_least(
    hits: int,
    alarms: int,
    draws: int,
    level: float,
    measure: Measure,
    weights: tuple[float, float] = (1.0, 1.0),
) -> float:
    """Compute a lower bound on a measure from an event's counts in `draws` draws of each input.

    It is above the measure of the event's two chances with a probability of at most `level`.
    Neither the event nor the weights, v and w, of which one is 1, may be chosen by these draws.
    """
    v, w = weights
    most = _sum_exceeded(v, w, level)
    edges = np.linspace(-most / v, 0.0, _CELLS + 1)  # of log P, along the edge of the region
    others = -(most + v * edges) / w  # of log Q there
    p, q = np.zeros(_CELLS), np.ones(_CELLS)
    if hits:
        p = stats.beta.ppf(np.exp(edges[:-1]), hits, draws - hits + 1)
    if alarms < draws:
        q = stats.beta.isf(np.exp(others[1:]), alarms + 1, draws - alarms)
    # The least of p and the largest of q in a cell: no pair within has a smaller measure.
    return max(0.0, float(measure(p, q).min()))


@cache
def _sum_exceeded(v: float, w: float, level: float) -> float:
    """Find c that v E + w F exceeds with a probability of `level`, E and F exponential times."""

    def excess(c: float) -> float:
        if v == w:
            return (1 + c / v) * math.exp(-c / v) - level
        return (v * math.exp(-c / v) - w * math.exp(-c / w)) / (v - w) - level

    return float(optimize.brentq(excess, 0.0, 4 - 2 * math.log(level), xtol=1e-12)) * (1 + 1e-9)


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
    """Raise ValueError for too few draws, or for a level that is not a probability."""
    if draws < 4:
        raise ValueError(f"{draws} draws are too few to choose an event and to test it; give more")
    if not 0 < level < 1:
        raise ValueError(f"a level of {level} is not between 0 and 1")


def rate_at_least(lengths: npt.NDArray[np.float64], dimensions: int, level: float) -> float:
    """Compute a lower bound on epsilon in a density proportional to exp(-epsilon ||z||).

    `lengths`, float64 (n,), are those of n independent draws of z in `dimensions` dimensions. Each
    is Gamma(dimensions, 1 / epsilon), so their sum is Gamma(n dimensions, 1 / epsilon). For noise
    of that form the bound is above epsilon with a probability of `level`; about other noise it says
    nothing.
    """
    return float(stats.gamma.ppf(level, len(lengths) * dimensions) / lengths.sum())
