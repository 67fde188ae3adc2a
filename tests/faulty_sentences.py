"""Faults in the mechanisms of sentences, and the audits that tell."""

from __future__ import annotations

from typing import Any

from correct_audits import Patch, candidates, many_candidates, truncation
from planting import Faults, of

from quietcorpus.mechanisms.exponential import Decay, ExponentialMechanism
from quietcorpus.mechanisms.truncation import Truncation


def half_decay(patch: Patch) -> None:
    """Weights that fall twice as fast as their rate says."""
    real = ExponentialMechanism.law.fget
    assert real is not None
    patch.setattr(ExponentialMechanism, "law", property(lambda self: Decay(2 * real(self).rate)))


def whole_epsilon(patch: Patch) -> None:
    """exp(epsilon u) in place of exp(epsilon u / 2)."""
    patch.setattr(
        ExponentialMechanism, "rate", property(lambda self: self.epsilon / self.sensitivity)
    )


def loud_draws(patch: Patch) -> None:
    """The draws alone: the law that is stated stays."""
    real = ExponentialMechanism.draw

    def loud(self: ExponentialMechanism, *given: Any) -> Any:
        return real(ExponentialMechanism(2 * self.epsilon, self.sensitivity), *given)

    patch.setattr(ExponentialMechanism, "draw", loud)


def one_dimension(patch: Patch) -> None:
    """The noise of one coordinate's sensitivity in all of them."""
    patch.setattr(Truncation, "rate", property(lambda self: self.epsilon / 4))


FAULTS: Faults = {
    "exp(epsilon u) for exp(epsilon u / 2)": (
        of(candidates, whole_epsilon),
        "documents: utilities that one sentence may give",
    ),
    "candidates drawn at twice epsilon": (
        of(candidates, loud_draws),
        "documents: candidates drawn, near",
    ),
    "weights that fall twice as fast": (
        of(candidates, half_decay),
        "documents: utilities that one sentence may give",
    ),
    "one of 2,000 candidates drawn at twice epsilon": (
        of(many_candidates, loud_draws),
        "documents: candidates drawn, near",
    ),
    "the sensitivity of one coordinate": (
        of(truncation, one_dimension),
        "documents: the noise's law",
    ),
}
