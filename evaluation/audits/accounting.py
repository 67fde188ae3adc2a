"""The cost of sampled Gaussians, by an accounting other than the mechanisms' own."""

from __future__ import annotations

import math

from scipy.special import log_ndtr

_ROUNDED = 5e-3  # about the most that rounding takes off epsilon in all
_LOSSES = 2e5  # about the most losses that one step may have
_FOURIER_ERROR = (
    2.0**-50
)  # of a delta, a step: 1e-16 was measured in compositions, 6e-16 in one step
_MARGIN = 1e-6  # of epsilon, for the two tails' rounding
_HALVINGS = 100


def epsilon_recomputed(rate: float, noise_multiplier: float, steps: int, delta: float) -> float:
    """Compute a lower bound on epsilon at `delta` for `steps` Poisson-sampled Gaussians.

    It comes from the privacy loss distribution with losses rounded down (Koskela, Jalko and Honkela
    2020; Meiser and Mohammadi: Tight on budget?, CCS 2018), for adding or removing one user. It is
    the least that the noise costs, where `mechanisms.accounting.privacy_loss` computes the most.
    Without sampling, losses are normal, and nothing is rounded to a grid. With it, what floats may
    add to a tail probability is added to delta: where delta is smaller, the bound is far below.
    Needs the extra [embeddings].

    Args:
        rate: the probability that a user takes part in a step.
        noise_multiplier: the noise's standard deviation over the most that a user adds, in L2.
        steps: the number of steps.
        delta: above 0.
    """
    if rate == 1:
        return normal_epsilon(math.sqrt(steps) / noise_multiplier, delta)
    from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism

    furthest = 10 / noise_multiplier + 1 / (2 * noise_multiplier**2)
    reach = math.log1p(rate * math.expm1(min(500.0, furthest)))
    once = from_gaussian_mechanism(
        noise_multiplier,
        sampling_prob=rate,
        pessimistic_estimate=False,
        value_discretization_interval=max(_ROUNDED / (steps + 50), reach / _LOSSES),
        use_connect_dots=False,  # that method gives only upper bounds
    )
    error = (steps + 1) * _FOURIER_ERROR
    return float(once.self_compose(steps).get_epsilon_for_delta(min(1.0, delta + error)))


def normal_epsilon(apart: float, delta: float) -> float:
    """Compute epsilon at `delta` for normals `apart` deviations apart, or a little less.

    Losses have the mean apart^2 / 2 and the deviation `apart`; both their tails are exact.
    """
    if not apart:
        return 0.0
    log_delta = math.log(delta)

    def exceeds(epsilon: float) -> bool:
        upper, lower = log_ndtr(apart / 2 - epsilon / apart), log_ndtr(-apart / 2 - epsilon / apart)
        rest = -math.expm1(min(0.0, epsilon + float(lower) - float(upper)))
        return rest > 0 and float(upper) + math.log(rest) > log_delta

    low, high = 0.0, 1.0
    while exceeds(high):
        high *= 2
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if exceeds(middle) else (low, middle)
    return low * (1 - _MARGIN)
