"""The cost of sampled Gaussians, by an accounting other than the mechanisms' own."""

from __future__ import annotations

import math

_ROUNDED = 5e-3  # about the most that rounding takes off epsilon in all
_LOSSES = 2e5  # about the most losses that one step may have


def epsilon_recomputed(rate: float, noise_multiplier: float, steps: int, delta: float) -> float:
    """Compute a lower bound on epsilon at `delta` for `steps` Poisson-sampled Gaussians.

    It comes from the privacy loss distribution with losses rounded down (Koskela, Jalko and Honkela
    2020; Meiser and Mohammadi: Tight on budget?, CCS 2018), for adding or removing one user. It is
    the least that the noise costs, where `quietcorpus.mechanisms.accounting` computes the most.
    Needs the extra [embeddings].

    Args:
        rate: the probability that a user takes part in a step.
        noise_multiplier: the noise's standard deviation over the most that a user adds, in L2.
        steps: the number of steps.
        delta: above 0.
    """
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
    return float(once.self_compose(steps).get_epsilon_for_delta(delta))
