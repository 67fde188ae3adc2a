"""Votes of documents for the items of a public list, as whole numbers, before and after noise.

Every document votes for the few items nearest to it, as in the nearest neighbour histograms of
Private Evolution (Lin, Gopi, Kulkarni, Nori and Yekhanin, ICLR 2024, algorithm 2) and of its
version for text (Xie et al., ICML 2024). Votes are whole numbers here, so that their norm is exact
and their sums are the same in any order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from ..accounting.filters import Concentrated
from ..accounting.guarantees import DocumentPrivacy
from ..encoding import Value
from ..keystream import Keystream

Sums = npt.NDArray[np.int64]
"""Votes by stratum and item, (L, m). A stratum has the documents of one label, if there are any."""


class Ballots(ABC):
    """A document's votes, and the noise on the sums over all documents.

    A document gives each of its `nearest` items, all different, the whole number `weight`. Which
    ones they are, and in which stratum they are counted, must depend on that document and on public
    knowledge alone.

    Attributes:
        nearest: how many items a document votes for.
        epsilon: of the noisy sums.
    """

    nearest: int
    epsilon: Fraction

    @property
    @abstractmethod
    def weight(self) -> int:
        """Return what a document gives to each of its items."""

    @property
    @abstractmethod
    def norm(self) -> int:
        """Return the most that one document's votes, or one user's, may be long."""

    @property
    @abstractmethod
    def stage_parameters(self) -> dict[str, Value]:
        """Return the stage parameters that votes and noise depend on."""

    @property
    @abstractmethod
    def guarantee(self) -> DocumentPrivacy:
        """Return the guarantee of the noisy sums."""

    @property
    @abstractmethod
    def concentrated(self) -> Concentrated | None:
        """Return the cost of the noisy sums under a filter, if the noise is Gaussian."""

    @property
    @abstractmethod
    def deviation(self) -> Fraction:
        """Return the standard deviation of the noise on one sum, rounded up."""

    @property
    @abstractmethod
    def least(self) -> int:
        """Return the least noisy sum that stands out of the noise."""

    @property
    @abstractmethod
    def by_chance(self) -> float:
        """Return the chance that a sum stands out by noise alone, for a person."""

    @abstractmethod
    def noisy(self, sums: Sums, stream: Keystream, rows: list[bytes]) -> Sums:
        """Add noise to the sums, whose rows have these contents."""

    def sums(
        self, items: npt.NDArray[np.int64], strata: npt.NDArray[np.int64], shape: tuple[int, int]
    ) -> Sums:
        """Add up the votes of n documents, int64 of this shape: strata and items.

        Arguments and errors are those of `places`.
        """
        places = self.places(items, strata, shape)
        counts = np.bincount(places.ravel(), minlength=shape[0] * shape[1])
        return (self.weight * counts.astype(np.int64)).reshape(shape)

    def places(
        self, items: npt.NDArray[np.int64], strata: npt.NDArray[np.int64], shape: tuple[int, int]
    ) -> npt.NDArray[np.int64]:
        """Find where the votes of n documents fall among all sums, row after row: (n, nearest).

        Args:
            items: (n, nearest), the numbers of each document's items, from the nearest on.
            strata: (n,), the number of each document's stratum.
            shape: L and m.

        Raises:
            ValueError: shapes do not fit, or a document names an item twice, for which its votes
                would be longer than the norm.
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

        Raises ValueError for sums that are not int64 (L, m).
        """
        if sums.ndim != 2 or sums.dtype != np.int64:
            raise ValueError("sums are int64, strata and items")
        return self.noisy(sums, stream, [row.astype("<i8").tobytes() for row in sums])

    def stand_out(self, noisy: Sums) -> npt.NDArray[np.bool_]:
        """Tell which items stand out of the noise, bool of the same shape."""
        found: npt.NDArray[np.bool_] = noisy >= self.least
        return found
