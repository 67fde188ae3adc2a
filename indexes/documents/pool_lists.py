"""Inverted lists of a pool: a text is in the list whose centroid has the largest product with it.

centroids.npy  float32 (L, d), whole numbers like the vectors
sizes.npy      int64 (L,): how many texts each list has

The texts of a list are neighbours in the pool, list after list: their vectors are read as they lie.

The nearest texts of a query are, by definition, those of the largest product among the texts of the
`probes` lists whose centroids have the largest products with it; of equal ones, of lists as of
texts, the lowest number comes first. If those lists have fewer texts than are asked for, further
ones are searched, in the same order, until there are enough. All products are exact
(`indexes.search.largest_products`), so that this is a function of the query and of the public
pool alone: no rounding, no batch and no machine decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ..search.largest_products import Largest, are_short_and_whole, largest

CENTROIDS, SIZES = "centroids.npy", "sizes.npy"
FILES = CENTROIDS, SIZES
_QUERIES_AT_ONCE = 1024  # the more, the more of them ask for the same list


@dataclass(frozen=True, eq=False)
class PoolLists:
    """The lists of a pool of m texts.

    Attributes:
        centroids: float32 (L, d), whole numbers.
        sizes: int64 (L,), the numbers of texts, which add up to m.
        probes: the number of lists that are searched for a query, 1 to L.
    """

    centroids: npt.NDArray[np.float32]
    sizes: npt.NDArray[np.int64]
    probes: int

    @cached_property
    def _starts(self) -> npt.NDArray[np.int64]:
        return np.concatenate([[0], np.cumsum(self.sizes)])

    def nearest(
        self, queries: npt.NDArray[np.float32], vectors: npt.NDArray[np.float32], count: int
    ) -> npt.NDArray[np.int64]:
        """Find the numbers of the `count` nearest texts, int64 (n, count), in order.

        `queries`, float32 (n, d), and the pool's `vectors`, float32 (m, d), are of products that
        are exact, and `count` is at most m.
        """
        found = np.empty((len(queries), count), dtype=np.int64)
        for start in range(0, len(queries), _QUERIES_AT_ONCE):
            chunk = queries[start : start + _QUERIES_AT_ONCE]
            best = Largest(chunk, count)
            # One product for all queries that ask for a list.
            for number, own in by_list(*self.searched(chunk, count)):
                best.compare(own, vectors, self._starts[number], self._starts[number + 1])
            found[start : start + len(chunk)] = best.numbers()
        return found

    def searched(
        self, queries: npt.NDArray[np.float32], count: int
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return pairs of a query and a list that is searched for it, each int64.

        A query's lists are the nearest ones, `probes` of them, or as many as have `count` texts.
        """
        near = largest(queries, self.centroids, self.probes)
        rows = np.repeat(np.arange(len(queries)), self.probes)
        few = np.flatnonzero(self.sizes[near].sum(axis=1) < count)
        every = largest(queries[few], self.centroids, len(self.centroids))
        before = np.cumsum(self.sizes[every], axis=1) - self.sizes[every]
        missing = before < count
        missing[:, : self.probes] = False
        further, places = np.nonzero(missing)
        return (
            np.concatenate([rows, few[further]]),
            np.concatenate([near.ravel(), every[further, places]]),
        )

    def are_of(self, vectors: npt.NDArray[np.float32]) -> bool:
        """Return whether these are lists of these vectors, float32 (m, d), of exact products."""
        return (
            self.centroids.dtype == np.dtype("<f4")
            and self.sizes.dtype == np.dtype("<i8")
            and self.centroids.shape == (len(self.sizes), vectors.shape[1])
            and self.sizes.ndim == 1
            and 1 <= self.probes <= len(self.sizes)
            and bool((self.sizes >= 0).all())
            and int(self.sizes.sum()) == len(vectors)
            and are_short_and_whole(self.centroids)
        )


def by_list(
    queries: npt.NDArray[np.int64], lists: npt.NDArray[np.int64]
) -> Iterator[tuple[int, npt.NDArray[np.int64]]]:
    """Yield each list of some pairs of a query and a list, and the queries that ask for it."""
    order = np.argsort(lists, kind="stable")
    numbers, starts = np.unique(lists[order], return_index=True)
    yield from zip(numbers.tolist(), np.split(queries[order], starts[1:]), strict=True)


def save(path: str, lists: PoolLists) -> None:
    """Write the files of lists into a folder."""
    np.save(f"{path}/{CENTROIDS}", lists.centroids)
    np.save(f"{path}/{SIZES}", lists.sizes)


def mapped(path: str, lists: int, probes: int) -> PoolLists:
    """Map the files of `lists` lists into memory; damaged ones raise errors of many kinds."""
    centroids, sizes = (
        np.load(f"{path}/{name}", mmap_mode="r", allow_pickle=False) for name in FILES
    )
    if len(sizes) != lists:
        raise ValueError
    return PoolLists(centroids, sizes, probes)
