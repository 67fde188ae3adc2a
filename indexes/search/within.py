"""Distances of a vocabulary's words, and the words within a radius of a word.

Squared distances are added up in float64 in the order of the dimensions, without fused operations:
the numbers, and so the words within a radius, are the same everywhere. A square errs by
(D + 4) 2^-53 of itself at most: a difference, its square and D additions of positive numbers.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from quietcorpus.compiled import compiled

from .euclidean import LONGEST_VECTOR, greatest_length

_STEPS = 1 << 149  # in 1: every float32 is a whole number of them
_VECTORS_AT_ONCE = 512  # with the dimensions, a tile that fits the second-level cache

Ids = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]


class Within:
    """The Euclidean distances of a vocabulary's vectors."""

    def __init__(self, vectors: npt.NDArray[np.float32]) -> None:
        """Keep `vectors`, float32 (V, d), without a copy, so that they may be mapped.

        Raises ValueError for vectors so long that their squares are not for float64.
        """
        if not greatest_length(vectors) <= LONGEST_VECTOR:
            raise ValueError(f"a vector is longer than {LONGEST_VECTOR:g}, or not finite")
        self._vectors = vectors

    @property
    def size(self) -> int:
        """Return the number of words V."""
        return len(self._vectors)

    @property
    def dimensions(self) -> int:
        """Return the dimensions of the vectors."""
        return int(self._vectors.shape[1])

    def within(self, words: Ids, radius: float) -> tuple[npt.NDArray[np.int64], Ids, Floats]:
        """Find all words that are no farther from each word than `radius`; see `Distances`.

        The limit is larger than the radius by more than a square's error, and the radius's own.

        Args:
            words: int32 (n,).
            radius: 0 or more; may be infinite.

        Returns:
            Where each word's own begin, int64 (n + 1,), the numbers of those within, ascending for
            each word, int32, and their squared distances, float64.
        """
        limit = radius**2 * (1 + (self.dimensions + 16) * 2.0**-51)
        own = self._vectors[words].astype(np.float64)
        room = len(words) * _VECTORS_AT_ONCE
        rows, ids, squares = (np.empty(room, kind) for kind in (np.int32, np.int32, np.float64))
        parts = []
        for start in range(0, self.size, _VECTORS_AT_ONCE):
            tile = self._vectors[start : start + _VECTORS_AT_ONCE]
            columns = np.ascontiguousarray(tile.T, dtype=np.float64)
            found = _near(own, columns, limit, start, rows, ids, squares)
            parts.append([part[:found].copy() for part in (rows, ids, squares)])
        rows, ids, squares = (np.concatenate(column) for column in zip(*parts, strict=True))
        counts = np.bincount(rows, minlength=len(words))
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return offsets, *_by_row(offsets, rows, ids, squares)

    def between(self, words: Ids, others: Ids) -> Floats:
        """Return the squared distance of each pair, float64 (n,)."""
        return _pairs(self._vectors, words, others)  # type: ignore[no-any-return]

    def exactly(self, word: int, others: Ids) -> list[Fraction]:
        """Return the squared distance of a word from each of others, exactly."""
        own, *found = (
            [int(value * _STEPS) for value in row]
            for row in self._vectors[[word, *others]].astype(np.float64).tolist()
        )
        return [
            Fraction(sum((a - b) ** 2 for a, b in zip(own, other, strict=True)), _STEPS**2)
            for other in found
        ]


@compiled
def _near(own, columns, limit, start, rows, ids, squares):  # type: ignore[no-untyped-def]
    """Write the words of a tile that are near each word, and return how many they are.

    `own` is float64 (n, d), and `columns` float64 (d, words of the tile).
    """
    count = columns.shape[1]
    sums = np.empty(count)
    found = 0
    for row in range(len(own)):
        sums[:] = 0.0
        for k in range(columns.shape[0]):
            value = own[row, k]
            column = columns[k]
            # Over words, so that compilers turn it into vector instructions.
            for i in range(count):
                difference = value - column[i]
                sums[i] += difference * difference
        for i in range(count):
            if sums[i] <= limit:
                rows[found] = row
                ids[found] = start + i
                squares[found] = sums[i]
                found += 1
    return found


@compiled
def _by_row(offsets, rows, ids, squares):  # type: ignore[no-untyped-def]
    """Return the found words, row by row; within a row, in the order that they have."""
    places = offsets[:-1].copy()
    sorted_ids, sorted_squares = np.empty_like(ids), np.empty_like(squares)
    for i in range(len(rows)):
        place = places[rows[i]]
        places[rows[i]] += 1
        sorted_ids[place] = ids[i]
        sorted_squares[place] = squares[i]
    return sorted_ids, sorted_squares


@compiled
def _pairs(vectors, words, others):  # type: ignore[no-untyped-def]
    """Return the squared distances of pairs, each in the order of the dimensions."""
    found = np.empty(len(words))
    for i in range(len(words)):
        total = 0.0
        for k in range(vectors.shape[1]):
            difference = np.float64(vectors[words[i], k]) - np.float64(vectors[others[i], k])
            total += difference * difference
        found[i] = total
    return found
