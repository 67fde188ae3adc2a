"""Tables of words' laws, by which draws are found from 64 random bits where these decide.

A row holds the outcomes of one word's law in their order: thresholds, its running sums as shares of
all, in units of 2^-64. What is left after the last of them is one further outcome. Thresholds are
computed in float64; a bound on their error says which draws the bits decide.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from quietcorpus.compiled import compiled

LAST, UNDECIDED = -1, -2
"""In place of an outcome: the one after all thresholds, and one that 64 bits do not decide."""
_MOST_TERMS = 2.0**40
_NOTHING_CLEAR = np.uint64(2**64 - 1)

Ids = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]


class Table:
    """Rows for some of V words; an entry takes 14 bytes."""

    def __init__(self, size: int, doubt: np.uint64) -> None:
        """Begin without rows, for words 0 .. size - 1; `doubt` bounds thresholds' errors."""
        self._doubt = doubt
        self._rows = np.full(size, -1, dtype=np.int32)
        self._starts = np.zeros((1, 2), dtype=np.int64)  # of a row's entries, and of its guide
        self._ids = np.empty(0, dtype=np.int32)
        self._thresholds = np.empty(0, dtype=np.uint64)
        self._guides = np.empty(0, dtype=np.int32)

    @property
    def entries(self) -> int:
        """Return how many entries it has."""
        return int(self._starts[-1, 0])

    def has(self, words: Ids) -> npt.NDArray[np.bool_]:
        """Return whether it has the row of each word."""
        held: npt.NDArray[np.bool_] = self._rows[words] >= 0
        return held

    def outcomes(self, word: int) -> Ids:
        """Return the outcomes of a word's row, save the last."""
        row = self._rows[word]
        return self._ids[self._starts[row, 0] : self._starts[row + 1, 0]]

    def add(
        self,
        words: Ids,
        offsets: npt.NDArray[np.int64],
        ids: Ids,
        weights: Floats,
        rest: Floats,
    ) -> None:
        """Add the rows of words that it lacks.

        Args:
            words: int32 (n,), distinct.
            offsets: int64 (n + 1,), where each row's entries begin.
            ids: int32, the outcomes.
            weights: float64, theirs.
            rest: float64 (n,), the weight of each row's last outcome.
        """
        thresholds = _thresholds(offsets, weights, rest)
        cells = np.concatenate([[0], np.cumsum(_cells(np.diff(offsets)))])
        entries, guides = self._starts[-1].tolist()
        first = len(self._starts) - 1
        self._ids = _grown(self._ids, entries, ids)
        self._thresholds = _grown(self._thresholds, entries, thresholds)
        self._guides = _grown(self._guides, guides, _guides(offsets, cells, thresholds))
        starts = np.stack([entries + offsets[1:], guides + cells[1:]], axis=1)
        self._starts = np.concatenate([self._starts, starts])
        self._rows[words] = np.arange(first, first + len(words), dtype=np.int32)

    def find(self, words: Ids, bits: npt.NDArray[np.uint64]) -> Ids:
        """Find the outcome of each word's draw, `LAST` or `UNDECIDED` among them, int32 (n,).

        `bits` are the draws, uint64 (n,).
        """
        tables = self._rows, self._starts, self._guides, self._thresholds, self._ids
        found: Ids = _find(words, *tables, bits, self._doubt)
        return found


def doubt_of(largest: Fraction, dimensions: int) -> np.uint64:
    """Bound the error of a threshold, in units of 2^-64.

    Let u be 2^-53, and x the `largest` exponent, rate * radius. A squared distance errs by
    (D + 4) u of itself at most (`distance_draws.Near`). So an exponent, after a root and a product
    with a rounded rate, errs by (D / 2 + 6) u of itself, and an exponential by 8 u besides: four
    units in the last place are more than any library errs by. Hence a weight errs by K u of itself,
    with K = (D / 2 + 6) x + 16, which leaves room for the difference from b and for a compensated
    sum. The weights of a row's k words add up to the sum C of their rests and to k b. With b itself
    in k differences, and V times beside them, sums err by K u (C + (2 k + V) b) at most. That is no
    more than 3 K u Z, where Z = C + V b is the sum of all. A quotient of two such sums, at most 1,
    errs by 6 K u and its own rounding. A hundredth more is room for products of errors, as long as
    these are small.
    """
    terms = 6 * ((dimensions / 2 + 6) * float(largest) + 16) + 8
    if terms > _MOST_TERMS:
        return _NOTHING_CLEAR
    return np.uint64(math.ceil(terms * 1.01) << 11)


def _grown(held: npt.NDArray[np.generic], used: int, more: npt.NDArray[np.generic]):  # type: ignore[no-untyped-def]
    """Return an array with `more` behind what is used of it, copied only where it lacks room."""
    if used + len(more) > len(held):
        larger = np.empty(max(used + len(more), len(held) * 3 // 2), dtype=held.dtype)
        larger[:used] = held[:used]
        held = larger
    held[used : used + len(more)] = more
    return held


@compiled
def _thresholds(offsets, weights, rest):  # type: ignore[no-untyped-def]
    """Return, for each row, its running sums as shares of all, in units of 2^-64."""
    found = np.empty(len(weights), dtype=np.uint64)
    sums = np.empty(len(weights))
    for row in range(len(rest)):
        total = 0.0
        lost = 0.0  # by rounding (Kahan), since rows may be long
        for i in range(offsets[row], offsets[row + 1]):
            term = weights[i] - lost
            larger = total + term
            lost = (larger - total) - term
            total = larger
            sums[i] = total
        whole = total + rest[row]
        for i in range(offsets[row], offsets[row + 1]):
            share = sums[i] / whole * 2.0**64
            # The largest float below 2^64, since 2^64 itself is no uint64.
            found[i] = np.uint64(min(share, 18446744073709549568.0))
    return found


def _cells(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return how many cells the guide of a row of so many entries has: a power of two."""
    return 1 << np.maximum(0, np.log2(np.maximum(1, counts)).astype(np.int64) - 1)


@compiled
def _guides(offsets, cells, thresholds):  # type: ignore[no-untyped-def]
    """Return, for each cell of equal shares of a row, how many thresholds lie below the cell."""
    guides = np.empty(cells[-1], dtype=np.int32)
    for row in range(len(cells) - 1):
        first = offsets[row]
        count = cells[row + 1] - cells[row]
        width = np.uint64(2**63) // np.uint64(count) * np.uint64(2) if count > 1 else np.uint64(0)
        place = first
        for cell in range(count):
            while place < offsets[row + 1] and thresholds[place] <= np.uint64(cell) * width:
                place += 1
            guides[cells[row] + cell] = place - first
    return guides


@compiled
def _find(words, rows, starts, guides, thresholds, ids, bits, doubt):  # type: ignore[no-untyped-def]
    """Find each draw's outcome; -1 for the last one, and -2 where 64 bits do not decide."""
    found = np.empty(len(words), dtype=np.int32)
    for i in range(len(words)):
        row = rows[words[i]]
        first, end = starts[row, 0], starts[row + 1, 0]
        guide = starts[row, 1]
        cells = np.uint64(starts[row + 1, 1] - guide)
        value = bits[i]
        place = first
        if cells > 1:
            # The leading bits of the value are the number of its cell.
            place += guides[guide + np.int64(((value >> np.uint64(32)) * cells) >> np.uint64(32))]
        while place < end and thresholds[place] <= value:
            place += 1
        clear = True
        if place > first:
            clear = value - thresholds[place - 1] >= doubt
        if place < end:
            clear = clear and thresholds[place] - value > doubt
        if not clear:
            found[i] = -2
        elif place < end:
            found[i] = ids[place]
        else:
            found[i] = -1
    return found
