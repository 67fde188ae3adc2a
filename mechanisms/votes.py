"""Votes of documents for the items of a public list, released once as noisy sums.

Every document votes for the few items nearest to it, as in the nearest neighbour histograms of
Private Evolution (Lin, Gopi, Kulkarni, Nori and Yekhanin, ICLR 2024, algorithm 2) and of its
version for text (Xie et al., ICML 2024). Votes are whole numbers here, so that their norm is exact
and their sums are the same in any order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from quietcorpus.mechanisms.accounting import noise_multiplier_for
from quietcorpus.mechanisms.clipped_sum import STEPS, ClippedSum
from quietcorpus.mechanisms.concentrated import rho_of
from quietcorpus.mechanisms.encoding import Value
from quietcorpus.mechanisms.filters import Concentrated
from quietcorpus.mechanisms.guarantees import DocumentPrivacy
from quietcorpus.mechanisms.keystream import Keystream

STANDS_OUT = 3
"""The least sum of an item that stands out, in standard deviations of the noise: of the items that
nobody votes for, one in 741 does so too."""

Sums = npt.NDArray[np.int64]
"""Votes by stratum and item, (L, m). A stratum has the documents of one label, if there are any."""


@dataclass(frozen=True)
class Votes:
    """Sums of documents' votes plus rounded Gaussian noise.

    A document gives each of its `nearest` items, all different, the whole number `weight`. Which
    ones they are, and in which stratum they are counted, must depend on that document and on public
    knowledge alone.

    Guarantee:
        A document's votes are at most STEPS in L2, in integers, over all strata together.
        Adding or removing one document changes the exact sums by its votes, and by nothing else.
        The noisy sums are (epsilon, delta)-differentially private for adding or removing one
        document, and so is all that is made of them and of public knowledge. They are Gaussian of
        the noise's rho, which is what they cost under a filter (`quietcorpus.mechanisms.filters`).
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
    def weight(self) -> int:
        """Return what a document gives to each of its items: floor(STEPS / sqrt(nearest))."""
        return math.isqrt(STEPS**2 // self.nearest)

    def sums(
        self, items: npt.NDArray[np.int64], strata: npt.NDArray[np.int64], shape: tuple[int, int]
    ) -> Sums:
        """Add up the votes of n documents, int64 of this shape: strata and items.

        Arguments and errors are those of `places`.
        """
        places = self.places(items, strata, shape)
        voters = np.bincount(places.ravel(), minlength=shape[0] * shape[1])
        return (voters.astype(np.int64) * self.weight).reshape(shape)

    def places(
        self, items: npt.NDArray[np.int64], strata: npt.NDArray[np.int64], shape: tuple[int, int]
    ) -> npt.NDArray[np.int64]:
        """Find where the votes of n documents fall among all sums, row after row: (n, nearest).

        Args:
            items: (n, nearest), the numbers of each document's items.
            strata: (n,), the number of each document's stratum.
            shape: L and m.

        Raises:
            ValueError: shapes do not fit, or a document names an item twice, for which its votes
                would be longer than STEPS.
        """
        if items.shape != (len(strata), self.nearest):
            raise ValueError(f"a document votes for {self.nearest} items in one stratum")
        if (np.diff(np.sort(items, axis=1), axis=1) == 0).any():
            raise ValueError("a document votes for an item once")
        found: npt.NDArray[np.int64] = np.ravel_multi_index(
            (np.broadcast_to(strata[:, None], items.shape), items), shape
        )
        return found

    def release(self, sums: Sums, stream: Keystream) -> Sums:
        """Add noise to the sums over all documents; return int64 of the same shape.

        Raises ValueError as `ClippedSum.release` does.
        """
        rows = [row.astype("<i8").tobytes() for row in sums]
        addresses = stream.addresses("votes", range(len(rows)), rows)
        return self.noise.release(sums, stream, addresses)

    @property
    def least(self) -> int:
        """Return the least noisy sum that stands out of the noise."""
        return math.ceil(STANDS_OUT * self.noise.deviation)

    def stand_out(self, noisy: Sums) -> npt.NDArray[np.bool_]:
        """Tell which items stand out of the noise, bool of the same shape."""
        found: npt.NDArray[np.bool_] = noisy >= self.least
        return found
