"""Texts of a pool that are near an earlier one by their embeddings, and are left out for that."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from quietcorpus.indexes.documents.pool_lists import by_list
from quietcorpus.mechanisms.sentences.deep_candidate import UNIT

NEAR = 0.95
"""The cosine from which on two texts are joined: above it, they differ in a few words."""
SEARCHED = 8
"""The lists in which near texts are looked for, where there are too many to compare all."""
_LEAST = NEAR * UNIT**2  # of the product of two vectors on the grid
_CHUNK = 1024  # texts that are compared with all earlier ones at a time
_BLOCK = 4096  # earlier texts whose products with a chunk are in memory at once


def apart(
    vectors: npt.NDArray[np.float32],
    searched: npt.NDArray[np.int64],
    on_compared: Callable[[int], object] = lambda _: None,
) -> npt.NDArray[np.int64]:
    """Return the numbers of vectors that are near no earlier one returned, in order.

    Args:
        vectors: float32 (n, d), on the grid.
        searched: int64 (n, p), the lists in which earlier ones are looked for, p different ones
            each; a vector is in its first. With one list of all, all earlier ones are compared.
        on_compared: called with the number of vectors compared.
    """
    lists = searched[:, 0]
    # Those returned of one list lie together, from the list's place on.
    places = np.concatenate([[0], np.cumsum(np.bincount(lists, minlength=searched.max() + 1))])
    held = np.zeros(len(places) - 1, dtype=np.int64)
    earlier = np.empty_like(vectors)
    kept = []
    for start in range(0, len(vectors), _CHUNK):
        chunk, asked = vectors[start : start + _CHUNK], searched[start : start + _CHUNK]
        own = lists[start : start + _CHUNK]
        taken = np.zeros(len(chunk), dtype=np.bool_)
        asking = np.repeat(np.arange(len(chunk)), asked.shape[1])
        for number, all_rows in by_list(asking, asked.ravel()):
            rows = all_rows[~taken[all_rows]]
            first, last = places[number], places[number] + held[number]
            for begin in range(first, last, _BLOCK):
                others = earlier[begin : min(begin + _BLOCK, last)]
                taken[rows] |= (chunk[rows] @ others.T >= _LEAST).any(axis=1)
        within = _near_within(chunk, own, asked)
        for row in np.flatnonzero(~taken):
            if not taken[row]:
                earlier[places[own[row]] + held[own[row]]] = chunk[row]
                held[own[row]] += 1
                kept.append(start + row)
                taken |= within[row]
        on_compared(start + len(chunk))
    return np.array(kept, dtype=np.int64)


def _near_within(
    chunk: npt.NDArray[np.float32], own: npt.NDArray[np.int64], asked: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    """Tell which vectors of a chunk, by column, are near which other, by row, and look for it."""
    near: npt.NDArray[np.bool_] = chunk @ chunk.T >= _LEAST
    rows, columns = np.nonzero(near)
    near[rows, columns] = (asked[columns] == own[rows][:, None]).any(axis=1)
    return near
