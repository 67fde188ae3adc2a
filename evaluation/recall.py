"""The recall of an approximate search, on the queries that a release would make."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from quietcorpus.indexes.search.protocol import Search

from .intervals import of_share
from .simulation import unit_noise

_CONFIDENCE = 0.95


@dataclass(frozen=True)
class Recall:
    """The share of queries for which a search finds the word that exact search finds.

    Attributes:
        found: the number of queries for which it does.
        queries: the number of all.
    """

    found: int
    queries: int

    @property
    def share(self) -> float:
        """Return the share of the queries, recall@1."""
        return self.found / self.queries

    @property
    def interval(self) -> tuple[float, float]:
        """Return the 95 % interval of the share (Clopper and Pearson)."""
        return of_share(self.found, self.queries, _CONFIDENCE)


def noisy_queries(
    vectors: npt.NDArray[np.float32], epsilon: float, count: int, seed: np.random.SeedSequence
) -> npt.NDArray[np.float32]:
    """Draw queries as Madlib makes them, of words drawn alike with replacement: float32 (n, d).

    They are an estimate's, never a release's: NumPy's generator draws.

    Args:
        vectors: float32 (V, d).
        epsilon: per unit of Euclidean distance.
        count: the number of queries, n.
        seed: equal seeds give equal words and noise, which is scaled by epsilon.
    """
    generator = np.random.default_rng(seed)
    words = generator.integers(len(vectors), size=count)
    noise = unit_noise(vectors.shape[1], count, generator)
    queries: npt.NDArray[np.float32] = vectors[words] + noise / np.float32(epsilon)
    return queries


def recall(search: Search, exact: Search, queries: npt.NDArray[np.float32]) -> Recall:
    """Count the queries, float32 (n, d), for which two searches find the same word."""
    same = search.nearest(queries) == exact.nearest(queries)
    return Recall(int(same.sum()), len(queries))
