"""Votes of documents for the items of a public list, released once under rounded Gaussian noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from ..accounting.concentrated import rho_of
from ..accounting.filters import Concentrated
from ..accounting.guarantees import DocumentPrivacy
from ..accounting.privacy_loss import noise_multiplier_for
from ..encoding import Value
from ..keystream import Keystream
from ..users.clipped_sum import STEPS, ClippedSum
from .ballots import Ballots, Sums

STANDS_OUT = 3
"""The least sum of an item that stands out, in standard deviations of the noise: of the items
without a vote, one in 741 does so too."""


@dataclass(frozen=True)
class Votes(Ballots):
    """Sums of documents' votes plus rounded Gaussian noise.

    A document gives each of its `nearest` items the same whole number, the largest one whose
    squares keep to the norm.

    Guarantee:
        A document's votes are at most STEPS in L2, in integers, over all strata together.
        Adding or removing one document changes the exact sums by its votes, and by nothing else.
        The noisy sums are (epsilon, delta)-differentially private for adding or removing one
        document, and so is all that is made of them and of public knowledge. They are Gaussian of
        the noise's rho, which is what they cost under a filter (`mechanisms.accounting.filters`).
        The noise is exact for ideal random bits; on the keyed stream the guarantee is
        computational (`quietcorpus.mechanisms.keystream`).

    Raises ValueError if `nearest` is not between 1 and STEPS^2, and as `noise_multiplier_for` does
    for the noise.
    """

    nearest: int
    epsilon: Fraction
    delta: Fraction

    def __post_init__(self) -> None:
        if not 1 <= self.nearest <= STEPS**2:
            raise ValueError(f"{self.nearest} is not between 1 and {STEPS**2} items")
        self.noise  # noqa: B018

    @property
    def weight(self) -> int:
        """Return what a document gives to each of its items."""
        return math.isqrt(STEPS**2 // self.nearest)

    @property
    def norm(self) -> int:
        """Return the most that votes may be long, in L2."""
        return STEPS

    @property
    def stage_parameters(self) -> dict[str, Value]:
        """Return the stage parameters that votes and noise depend on."""
        return {
            "nearest": self.nearest,
            "noise_multiplier": self.noise.noise_multiplier,
        }

    @property
    def guarantee(self) -> DocumentPrivacy:
        """Return the guarantee of the noisy sums."""
        return DocumentPrivacy(self.epsilon, self.delta)

    @property
    def concentrated(self) -> Concentrated:
        """Return the cost of the noisy sums, under a filter."""
        return Concentrated(rho_of(self.noise.noise_multiplier))

    @cached_property
    def noise(self) -> ClippedSum:
        """Return the mechanism that adds noise to every sum."""
        return ClippedSum(noise_multiplier_for(self.epsilon, self.delta, Fraction(1), 1))

    @property
    def deviation(self) -> Fraction:
        """Return the standard deviation of the noise on one sum."""
        return self.noise.deviation

    @property
    def least(self) -> int:
        """Return the least noisy sum that stands out of the noise."""
        return math.ceil(STANDS_OUT * self.noise.deviation)

    @property
    def by_chance(self) -> float:
        """Return the chance that a sum stands out by noise alone, for a person."""
        reached = (self.least - 0.5) / float(self.noise.deviation)
        return math.erfc(reached / math.sqrt(2)) / 2

    def noisy(self, sums: Sums, stream: Keystream, rows: list[bytes]) -> Sums:
        """Add noise to the sums, whose rows have these contents."""
        return self.noise.release(sums, stream, stream.addresses("votes", range(len(rows)), rows))
