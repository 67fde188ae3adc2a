"""The audit of what a release costs the users of each group."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

from quietcorpus.evaluation.audits.accounting import epsilon_recomputed
from quietcorpus.evaluation.audits.findings import Exact, Sampled
from quietcorpus.mechanisms.group_norms import GroupNorms
from quietcorpus.mechanisms.guarantees import UserPrivacy, round_up

Composition = tuple[Fraction, Fraction, int]
"""A user's sampling rate, the noise multiplier and the number of steps."""


def of_group(name: str) -> str:
    """Return the end of an audit's name: the group of users that it is about, if they have any."""
    return f": group {name}" if name else ""


def once(norms: GroupNorms) -> dict[str, Composition]:
    """Return the course of each group's users in a single sum."""
    return {name: (Fraction(1), noise, 1) for name, noise in norms.noise_multipliers.items()}


def of_accounting(guarantee: UserPrivacy, courses: dict[str, Composition]) -> list[Exact | Sampled]:
    """Return audits of each group's stated epsilon by a second accounting of the actual noise."""
    stated = dict(guarantee.groups) or {"": guarantee.epsilon}
    delta = guarantee.delta
    return [
        Exact(
            f"accounting{of_group(name)}",
            round_up(stated[name]),
            f"A lower bound of what {steps} Gaussian{'s' if steps > 1 else ''} of noise multiplier "
            f"{float(noise):.4g} at a sampling rate of {float(rate):.3g} cost was computed by the "
            "privacy loss distribution.",
            partial(epsilon_recomputed, float(rate), float(noise), steps, float(delta)),
            round_up(delta),
        )
        for name, (rate, noise, steps) in courses.items()
        if rate and steps
    ]
