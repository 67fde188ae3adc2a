"""Composition of (epsilon, delta) guarantees whose budgets were fixed beforehand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from dp_accounting.pld.common import DifferentialPrivacyParameters
from dp_accounting.pld.privacy_loss_distribution import from_privacy_parameters

from quietcorpus.mechanisms.guarantees import ceiling, round_down, round_up

_STEP = 1e-4
_LARGEST = 100  # of the epsilons' sum: arrays have an entry for each step
_MARGIN = 2.0**-30


def fixed_beforehand(budgets: Sequence[tuple[Fraction, Fraction]], delta: Fraction) -> Fraction:
    """Return an upper bound on the epsilon, at delta, of budgets that were fixed beforehand.

    It is the optimal composition of (epsilon, delta) guarantees (Kairouz, Oh and Viswanath 2015),
    by the privacy loss distributions of `dp_accounting`, whose losses are rounded up. It is not a
    bound for budgets that are chosen in the light of earlier outputs (Rogers et al. 2016); the sums
    of these budgets are.

    Raises ValueError where delta does not exceed the unavoidable part of the sum of the deltas, and
    for epsilons that add up to more than 100.
    """
    if sum(epsilon for epsilon, _ in budgets) > _LARGEST:
        raise ValueError(f"epsilons that add up to more than {_LARGEST} take arrays too long")
    composed = None
    for (epsilon, own), times in Counter(budgets).items():
        parameters = DifferentialPrivacyParameters(round_up(epsilon), round_up(own))
        several = from_privacy_parameters(parameters, _STEP).self_compose(times)
        composed = several if composed is None else composed.compose(several)
    found = composed.get_epsilon_for_delta(round_down(delta)) if composed else 0.0
    if found == float("inf"):
        raise ValueError("no epsilon is enough for so small a delta")
    return Fraction(ceiling(Fraction(found * (1 + _MARGIN))))
