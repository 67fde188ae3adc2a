"""Inverted lists of a pool: how many are asked for, their training, and what they find."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from quietcorpus.indexes.documents.pool import MOST_COMPARED
from quietcorpus.indexes.documents.pool_lists import PoolLists
from quietcorpus.indexes.search import inverted_lists
from quietcorpus.indexes.search.inverted_lists import LARGEST_SEED
from quietcorpus.indexes.search.largest_products import largest
from quietcorpus.mechanisms.sentences.deep_candidate import on_grid
from quietcorpus.transforms.errors import InputError, shown

from ..runners.parallel import processors

_TEXTS_A_LIST = 10  # on average, at least: fewer are too few to be found by their centroid
_QUERIES = 1_000  # texts on which recall is measured, and of a small pool one in `_ONE_IN`
_ONE_IN = 10
_COUNTS = 1, 20, 500  # of nearest texts; 20 is the default of a spec
_CHOSEN_BY, _ENOUGH = 20, 0.95  # probes reach a recall of `_ENOUGH` for `_CHOSEN_BY` nearest texts
_FORM = re.compile("ivf:lists=([1-9][0-9]{0,8})(?:,probes=([1-9][0-9]{0,8}))?")


@dataclass(frozen=True)
class Asked:
    """Inverted lists as a person asks for them.

    Attributes:
        lists: their number.
        probes: how many are searched for a document; None to choose by recall.
        seed: the seed of the training, and of the choice of texts that recall is measured on.
    """

    lists: int
    probes: int | None
    seed: int

    def check(self, texts: int) -> None:
        """Raise InputError if these are more lists than `texts` texts can fill."""
        most = texts // _TEXTS_A_LIST
        if not most:
            raise InputError(
                f"search: {texts} different texts are too few for lists; leave it out, or give "
                f"{_TEXTS_A_LIST} texts or more"
            )
        if self.lists > most:
            raise InputError(
                f"search: lists={self.lists:,} is more than {texts:,} different texts fill; give "
                f"at most {most:,}, a list for {_TEXTS_A_LIST} texts"
            )


def parse(search: str, seed: int) -> Asked:
    """Read what `--search` asks for; raises InputError."""
    found = _FORM.fullmatch(search)
    if not found:
        raise InputError(
            f"search: {shown(search)} is not allowed; give ivf:lists=NUMBER, such as "
            "ivf:lists=4096, or ivf:lists=NUMBER,probes=NUMBER"
        )
    if seed > LARGEST_SEED:
        raise InputError(f"seed: {seed} is not allowed; give one of {LARGEST_SEED} at most")
    lists, probes = int(found[1]), found[2] and int(found[2])
    if probes and probes > lists:
        raise InputError(f"search: probes={probes:,} is more than the {lists:,} lists; give less")
    return Asked(lists, probes or None, seed)


def needed(texts: int, seed: int) -> Asked | None:
    """Return the lists of a pool for which none were asked: None if all texts can be compared."""
    return None if texts <= MOST_COMPARED else Asked(4 * math.isqrt(texts), None, seed)


@dataclass(frozen=True, eq=False)
class Trained:
    """Centroids of lists for n texts, and the lists of each.

    Attributes:
        asked: what was asked for.
        centroids: float32 (L, d), on the grid.
        near: int64 (n, p), the lists nearest to each text, which is in the first.
        held_out: bool (n,), the texts that had no part in the training.
    """

    asked: Asked
    centroids: npt.NDArray[np.float32]
    near: npt.NDArray[np.int64]
    held_out: npt.NDArray[np.bool_]


def train(vectors: npt.NDArray[np.float32], asked: Asked, near: int = 1) -> Trained:
    """Train the centroids of lists for texts' vectors on the grid, float32 (n, d).

    Of each text, the `near` nearest lists are found, or all if there are fewer.
    """
    held_out = np.zeros(len(vectors), dtype=np.bool_)
    size = min(_QUERIES, len(vectors) // _ONE_IN)
    held_out[np.random.default_rng(asked.seed).choice(len(vectors), size, replace=False)] = True
    found = inverted_lists.centroids(
        vectors[~held_out], asked.lists, asked.seed, threads=processors()
    )
    centroids = on_grid(found)
    lists = largest(vectors, centroids, min(near, len(centroids)))
    return Trained(asked, centroids, lists, held_out)


@dataclass(frozen=True, eq=False)
class Arranged:
    """The texts of a pool in the order of its lists.

    Attributes:
        order: int64 (m,), the numbers of the texts among the n.
        lists: the lists; none is empty.
        search: the manifest's description of them.
    """

    order: npt.NDArray[np.int64]
    lists: PoolLists
    search: Mapping[str, Any]


def arrange(
    vectors: npt.NDArray[np.float32], trained: Trained, kept: npt.NDArray[np.int64]
) -> Arranged:
    """Put the texts of a pool into lists, and measure their recall.

    The queries are the texts that had no part in the training, and each is left out of what is
    found for it: so a query is what a document of the same kind would be that is not in the pool.

    Args:
        vectors: float32 (n, d), of all texts.
        trained: their lists.
        kept: int64 (m,), the numbers of those that are in the pool.
    """
    own = trained.near[kept, 0]
    order = kept[np.argsort(own, kind="stable")]
    used, sizes = np.unique(own, return_counts=True)
    centroids, asked = trained.centroids[used], trained.asked
    ordered, queries = vectors[order], np.flatnonzero(trained.held_out[order])
    measured = _Recall(ordered, queries)
    probes = min(asked.probes or 1, len(used))
    lists = PoolLists(centroids, sizes, probes)
    if asked.probes is None:
        while probes < len(used) and measured.enough(lists) < _ENOUGH:
            probes = min(2 * probes, len(used))
            lists = PoolLists(centroids, sizes, probes)
    search = {
        "lists": len(used),
        "probes": probes,
        "seed": asked.seed,
        "recall": measured.of(lists),
        "queries": len(queries),
    }
    return Arranged(order, lists, search)


class _Recall:
    """The share of the nearest other texts of some texts that lists find."""

    def __init__(self, vectors: npt.NDArray[np.float32], queries: npt.NDArray[np.int64]) -> None:
        """Find the nearest texts of the texts of these numbers, among all."""
        self._vectors, self._queries = vectors, queries
        self._most = max((count for count in _COUNTS if count < len(vectors)), default=0)
        self._nearest = self._others(largest(vectors[queries], vectors, self._most + 1))

    def enough(self, lists: PoolLists) -> float:
        """Return the recall by which probes are chosen; 1 if there is nothing to measure."""
        return self._share(lists, min(_CHOSEN_BY, self._most))

    def of(self, lists: PoolLists) -> dict[str, float]:
        """Return the recall by number of nearest texts, rounded down; empty without queries."""
        counts = [count for count in _COUNTS if count <= self._most and len(self._queries)]
        return {str(count): math.floor(1e4 * self._share(lists, count)) / 1e4 for count in counts}

    def _share(self, lists: PoolLists, count: int) -> float:
        found = self._others(lists.nearest(self._vectors[self._queries], self._vectors, count + 1))
        kept = sum(
            np.isin(own, exact).sum()
            for own, exact in zip(found, self._nearest[:, :count], strict=True)
        )
        return float(kept / found.size) if found.size else 1.0

    def _others(self, found: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Leave each query itself out of what was found for it, or else the last text."""
        other = found != self._queries[:, None]
        other[other.all(axis=1), -1] = False
        others: npt.NDArray[np.int64] = found[other].reshape(len(found), found.shape[1] - 1)
        return others
