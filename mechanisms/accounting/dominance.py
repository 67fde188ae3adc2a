"""The Gaussian that a sampled training costs no more than, up to a small chance.

A filter over Gaussians adds up rhos. Poisson-sampled Gaussians are not Gaussian: rare losses are
larger. With these left to a chance of delta, there is a rho that covers the rest.
"""

from __future__ import annotations

import functools
import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import scipy

from .concentrated import rho_of, rounded_up
from .filters import Concentrated
from .guarantees import round_down, round_up
from .privacy_loss import Schedule, loss_distribution

_POINTS = 20_000
_ROUNDS = 50
_ROUNDING = 2.0**-45
_MARGIN = Fraction(1, 1 << 30)


@functools.lru_cache(maxsize=256)
def dominating(
    rate: Fraction, noise_multiplier: Fraction, steps: int, delta: Fraction
) -> Concentrated | None:
    """Return a cost of `steps` sampled Gaussians: Gaussian of a rho, up to a chance of `delta`.

    Arguments are those of `mechanisms.accounting.privacy_loss.epsilon_of`. Without sampling, the
    result is exact and delta is 0. None if there is no bound for so little noise.

    Let h(s) be the largest P(S) - exp(s) Q(S) of the training, in either direction, and H(s) that
    of two normals of rho. If h(s) <= delta + (1 - delta) H(s) for every s from 0 on, the training's
    two laws can be made from a pair that tells which of the two it is with a chance of delta and
    is the two normals else (Blackwell; Zhu, Dong and Wang 2022): that pair has this very curve, and
    both directions from 0 on determine the rest. h is bounded by the privacy loss distribution,
    which composes also where steps depend on earlier ones. Both curves fall, so that h at each
    point of a grid is compared with H at the next one. Past the grid, h is below delta.
    The bounds hold in real numbers; margins cover floats, and are measured, not proved.
    """
    if not (rate and steps):
        return Concentrated(Fraction(0))
    if rate == 1:
        return Concentrated(rounded_up(steps * rho_of(noise_multiplier)))
    found = loss_distribution(rate, noise_multiplier, steps)
    if found is None or round_down(delta) <= 2 * found.error:
        return None
    chance = round_down(delta) - found.error - _ROUNDING
    top = found.distribution.get_epsilon_for_delta(chance)
    if not (chance > 0 and math.isfinite(top)):
        return None
    grid = np.linspace(0, top, _POINTS)
    most = np.asarray(found.distribution.get_delta_for_epsilon(grid[:-1]))
    excess = (most - chance) / (1 - round_up(delta))

    def covers(apart: float) -> bool:
        return bool((excess <= _curve(apart, grid[1:])).all())

    low, high = 0.0, 1.0
    while not covers(high):
        low, high = high, 2 * high
        if high > 100:
            return None
    for _ in range(_ROUNDS):
        middle = (low + high) / 2
        low, high = (low, middle) if covers(middle) else (middle, high)
    return Concentrated(rounded_up(Fraction(high) ** 2 / 2 * (1 + _MARGIN)), delta)


def of_schedule(schedule: Schedule, done: int) -> Concentrated | None:
    """Return the cost of `done` steps to the most exposed users, under a filter.

    A hundredth of the schedule's delta is left to rare losses. None if a group has no bound.
    """
    chance = schedule.delta / 100
    found = [
        dominating(group.rate, schedule.noise_multiplier, min(done, group.steps), chance)
        for group in schedule.groups
    ]
    known = [one for one in found if one is not None]
    if len(known) < len(found):
        return None
    return Concentrated(max(one.rho for one in known), max(one.delta for one in known))


def _curve(apart: float, epsilons: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Compute H of two normals that are so far apart."""
    middle = epsilons / apart
    lower = scipy.special.ndtr(-middle - apart / 2)
    return np.asarray(scipy.special.ndtr(apart / 2 - middle) - np.exp(epsilons) * lower)
