"""The privacy cost of Poisson-sampled Gaussians, and schedules that keep to every group's budget.

Epsilon is for adding or removing one user. Without sampling, all steps together are one Gaussian,
whose curve is known (Balle and Wang 2018, theorem 8). With it, epsilon is the smaller of two upper
bounds: the privacy loss distribution's (Zhu, Dong and Wang 2022; Doroshenko et al. 2022), and the
Renyi divergences' (Mironov, Talwar and Zhang 2019). The first is smaller by a tenth or so; the
second is used where the first's arrays would be huge, or delta is too small for its transforms.

Groups of users with different budgets share noise and steps, and each is sampled at its own rate
(Boenisch et al.: Have it your way, NeurIPS 2023, "sampling").
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import scipy
from dp_accounting import get_epsilon_gaussian
from dp_accounting.pld.privacy_loss_distribution import (
    PrivacyLossDistribution,
    from_gaussian_mechanism,
)

from ..digits import edge, index_of, number, within
from ..encoding import Value
from .guarantees import ceiling, round_down, round_up

SMALLEST_NOISE, LARGEST_NOISE = Fraction(1, 10), Fraction(64)
"""The range in which noise multipliers are sought; 64 is the largest that `ClippedSum` draws."""

SMALLEST_DELTA = Fraction(1, 10**300)
_LEAST_RATE = 1e-9
_ORDERS = (*range(2, 65), 80, 96, 128, 192, 256, 384, 512, 1024)
_LITTLE_NOISE, _MUCH_NOISE, _LARGEST_MEAN = 1e-4, 1e3, 100.0
_MARGIN = 2.0**-30
_FOURIER_ERROR = 2.0**-50


def epsilon_of(rate: Fraction, noise_multiplier: Fraction, steps: int, delta: Fraction) -> Fraction:
    """Return an upper bound on the epsilon of `steps` sampled Gaussians, in 6 significant digits.

    A user takes part in a step with probability `rate`, independently of all else; at a rate of 1,
    in every step. `noise_multiplier` is the noise's standard deviation divided by the largest L2
    change that one user makes to a sum. The bounds hold in real numbers; margins cover their
    computation in floats, and are measured, not proved.

    Raises ValueError for numbers out of range, and where no bound can be computed.
    """
    bound = _bound(rate, noise_multiplier, steps, delta)
    if bound is None:
        raise ValueError("no epsilon can be computed for so little noise")
    return bound


@functools.lru_cache(maxsize=1 << 14)
def _bound(rate: Fraction, noise: Fraction, steps: int, delta: Fraction) -> Fraction | None:
    """Return the bound of `epsilon_of`, or None where there is none."""
    if not (0 <= rate <= 1 and noise > 0 and steps >= 0 and SMALLEST_DELTA <= delta < 1):
        raise ValueError(
            f"a rate lies in [0, 1], delta in [{float(SMALLEST_DELTA):g}, 1), noise above 0, steps "
            "from 0 on"
        )
    if not (rate and steps):
        return Fraction(0)
    # Each number is rounded to a float in the direction that protects users less.
    numbers = round_down(noise), steps, round_down(delta) * (1 - _MARGIN)
    sampled = max(round_up(rate), _LEAST_RATE)
    epsilon = (
        _unsampled(*numbers)
        if sampled == 1
        else min(_renyi(sampled, *numbers), _losses(sampled, *numbers))
    )
    if not math.isfinite(epsilon):
        return None
    # `get_epsilon_gaussian` solves to 1e-12.
    return Fraction(ceiling(Fraction(epsilon * (1 + _MARGIN) + 1e-11 * (epsilon > 0))))


def _unsampled(noise: float, steps: int, delta: float) -> float:
    """Compute epsilon from the exact curve.

    Noise above `_MUCH_NOISE` counts as that much: the curve's two tails would differ too little.
    """
    noise /= math.sqrt(steps)
    if noise < _LITTLE_NOISE:
        return math.inf
    return float(get_epsilon_gaussian(min(noise, _MUCH_NOISE), delta))


def _renyi(rate: float, noise: float, steps: int, delta: float) -> float:
    """Compute epsilon from Renyi divergences of whole orders (Mironov, Talwar and Zhang, 3.3).

    The sum is A - 1 rather than A: its terms are all positive, and none is lost however low the
    rate. Proposition 12 of Canonne, Kamath and Steinke (2020) converts divergences to an epsilon.
    """
    best = math.inf
    for order in _ORDERS if noise >= _LITTLE_NOISE else ():
        k = np.arange(2, order + 1)
        ways = (
            scipy.special.gammaln(order + 1)
            - scipy.special.gammaln(k + 1)
            - scipy.special.gammaln(order - k + 1)
        )
        chance = ways + k * math.log(rate) + (order - k) * math.log1p(-rate)
        growth = k * (k - 1) / (2 * noise**2)
        excess = scipy.special.logsumexp(chance + growth + np.log(-np.expm1(-growth)))
        divergence = float(np.logaddexp(0, excess)) / (order - 1)
        found = math.log1p(-1 / order) - (math.log(delta) + math.log(order)) / (order - 1)
        best = min(best, steps * divergence + found)
    return max(0.0, best)


def _losses(rate: float, noise: float, steps: int, delta: float) -> float:
    """Compute epsilon from the privacy loss distribution; infinity where that is not feasible."""
    error = (steps + 1) * _FOURIER_ERROR
    found = _loss_distribution(rate, noise, steps) if delta >= 2 * error else None
    if found is None:
        return math.inf
    return float(found.distribution.get_epsilon_for_delta(delta - found.error))


@dataclass(frozen=True)
class LossDistribution:
    """The privacy loss distribution of sampled Gaussians, for adding and for removing a user.

    Attributes:
        distribution: has the largest delta of either direction, rounded up, for every epsilon.
        error: what Fourier transforms may add to a tail probability: 1e-16 a step was measured, and
            this is nine times that.
        interval: of the losses on the grid.
    """

    distribution: PrivacyLossDistribution
    error: float
    interval: float


def loss_distribution(
    rate: Fraction, noise_multiplier: Fraction, steps: int
) -> LossDistribution | None:
    """Return the loss distribution of `steps` Gaussians sampled at a rate below 1; None if huge."""
    sampled = max(round_up(rate), _LEAST_RATE)
    return _loss_distribution(sampled, round_down(noise_multiplier), steps)


def _loss_distribution(rate: float, noise: float, steps: int) -> LossDistribution | None:
    if noise < SMALLEST_NOISE:
        return None
    # The mean loss is at most rate times the unsampled one (convexity), and at most the divergence
    # of order 2. It is close to half the variance; the two determine the composed array's length.
    mean = min(rate / (2 * noise**2), math.log1p(rate**2 * math.expm1(noise**-2))) * steps
    if mean > _LARGEST_MEAN:
        return None
    # Below 1e-5 rounding (upwards) swamps the library's probabilities, which are differences.
    reach = math.log1p(rate * math.expm1(10 / noise + 1 / (2 * noise**2)))
    interval = max(1e-5, reach / 2e4, (20 * math.sqrt(mean) + mean) / 5e5)
    step = from_gaussian_mechanism(
        noise, sampling_prob=rate, value_discretization_interval=interval
    )
    return LossDistribution(step.self_compose(steps), (steps + 1) * _FOURIER_ERROR, interval)


def noise_multiplier_for(
    epsilon: Fraction, delta: Fraction, rate: Fraction, steps: int
) -> Fraction:
    """Return the smallest noise multiplier, in 4 significant digits, that keeps to `epsilon`.

    It is never below `SMALLEST_NOISE`. Raises ValueError if `LARGEST_NOISE` exceeds `epsilon`.
    """

    def spent(index: int) -> Fraction | None:
        return _bound(rate, number(index), steps, delta)

    low, high = index_of(SMALLEST_NOISE), index_of(LARGEST_NOISE)
    if not within(spent(high), epsilon):
        once = rate == steps == 1
        what = "one sum" if once else f"{steps} steps at a sampling rate of {float(rate):.3g}"
        raise ValueError(
            f"no noise multiplier up to {LARGEST_NOISE} keeps {what} to epsilon "
            f"{float(epsilon):.3g} at delta {float(delta):.3g}; take "
            f"{'' if once else 'fewer steps, a lower rate, or '}a larger epsilon or delta"
        )
    return number(low if within(spent(low), epsilon) else edge(spent, epsilon, high, low))


def rate_for(
    epsilon: Fraction, delta: Fraction, noise_multiplier: Fraction, steps: int, most: Fraction
) -> Fraction:
    """Return the largest sampling rate up to `most` that keeps to `epsilon`.

    It is `most` itself or has 4 significant digits; it is 0 if even 1e-9 exceeds `epsilon`.
    """
    return _largest(lambda rate: _bound(rate, noise_multiplier, steps, delta), epsilon, most)


def share_for(epsilon: Fraction, delta: Fraction, noise_multiplier: Fraction) -> Fraction:
    """Return the largest share of the clipping norm that keeps one unsampled release to `epsilon`.

    It is at most 1 and has 4 significant digits; it is 0 if even 1e-9 exceeds `epsilon`. For users
    clipped to a share s the noise multiplier is noise_multiplier / s.
    """
    one = Fraction(1)
    return _largest(lambda share: _bound(one, noise_multiplier / share, 1, delta), epsilon, one)


@dataclass(frozen=True)
class Group:
    """The users of one budget, `epsilon`: sampled at `rate` in the first `steps` steps, then never.

    They leave when the next step would exceed their budget.
    """

    name: str
    epsilon: Fraction
    rate: Fraction
    steps: int


@dataclass(frozen=True)
class Schedule:
    """The sampling of each group's users in up to `steps` steps at one noise multiplier.

    Guarantee:
        A user of group g has an epsilon of at most g.epsilon, at `delta`, whenever training ends.
        The schedule depends on budgets, delta, rate and steps alone.
    """

    noise_multiplier: Fraction
    delta: Fraction
    steps: int
    groups: tuple[Group, ...]

    @property
    def stage_parameters(self) -> dict[str, Value]:
        """Return the stage parameters that decide which users take part in which step."""
        return {
            "noise_multiplier": self.noise_multiplier,
            "delta": self.delta,
            "steps": self.steps,
            "groups": [
                {
                    "name": group.name,
                    "epsilon": group.epsilon,
                    "rate": group.rate,
                    "steps": group.steps,
                }
                for group in self.groups
            ],
        }

    @classmethod
    def solved(
        cls,
        budgets: Mapping[str, Fraction],
        delta: Fraction,
        rate: Fraction,
        steps: int,
        *,
        leave: bool = False,
    ) -> Schedule:
        """Build the schedule with the least noise for the largest of the `budgets` at `rate`.

        Users of other budgets get a lower rate, or the same rate until they `leave`.
        Raises ValueError as `noise_multiplier_for` does.
        """
        noise = noise_multiplier_for(max(budgets.values()), delta, rate, steps)
        rates = {
            name: rate if leave else rate_for(budgets[name], delta, noise, steps, rate)
            for name in budgets
        }
        return cls.of(budgets, rates, noise, delta, steps)

    @classmethod
    def of(
        cls,
        budgets: Mapping[str, Fraction],
        rates: Mapping[str, Fraction],
        noise_multiplier: Fraction,
        delta: Fraction,
        steps: int,
    ) -> Schedule:
        """Build the schedule at the given `rates`; a group may have to leave before the end."""

        def group(name: str) -> Group:
            def spent(done: int) -> Fraction | None:
                return _bound(rates[name], noise_multiplier, done, delta)

            budget = budgets[name]
            last = steps if within(spent(steps), budget) else edge(spent, budget, 0, steps)
            return Group(name, budget, *((rates[name], last) if rates[name] and last else _NEVER))

        return cls(noise_multiplier, delta, steps, tuple(map(group, budgets)))

    def spent(self, group: Group, done: int) -> Fraction:
        """Return the epsilon of the users of `group` after `done` steps of the training."""
        return epsilon_of(group.rate, self.noise_multiplier, min(done, group.steps), self.delta)


def papers_epsilon(
    rate: Fraction, noise_multiplier: Fraction, steps: int, lot: Fraction, delta: Fraction
) -> Fraction:
    """Compute epsilon by dpUGC's bookkeeping (Vu, Tran and Jiang 2019), which proves nothing.

    A step's sqrt(2 ln(1.25 / delta)) / sigma is divided by the lot's size, and summed over the
    rate * steps steps that a user is expected to take part in. The division proves nothing: the
    sampling of other users hides no user. The result has 6 digits and is rounded up.
    """
    step = math.sqrt(2 * (math.log(1.25) - math.log(round_down(delta)))) * (1 + _MARGIN)
    return Fraction(ceiling(Fraction(step) / noise_multiplier / lot * rate * steps))


_NEVER = Fraction(0), 0


def _largest(
    spent: Callable[[Fraction], Fraction | None], epsilon: Fraction, most: Fraction
) -> Fraction:
    """Return `most`, or the largest number of 4 digits below it that keeps to `epsilon`, or 0.

    An epsilon of 0 gives 0: sampling so rare that delta alone covers it is worth nothing.
    """
    if not (most and epsilon):
        return Fraction(0)
    if within(spent(most), epsilon):
        return most
    high = index_of(most) + 1
    low = min(index_of(Fraction(_LEAST_RATE)), high - 1)
    if not within(spent(number(low)), epsilon):
        return Fraction(0)
    return number(edge(lambda index: spent(min(number(index), most)), epsilon, low, high))
