"""Texts of a pool that are left out: edited copies of an earlier one, and near ones.

Texts of a pool that are edited copies of an earlier one, and are left out for that.

An edited copy is found by its words, so that no encoder has a part in it: an encoder that is made
of a small pool has all texts on a subject near each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from quietcorpus.compiled import compiled
from quietcorpus.evaluation.overlap import EDITS, is_passage, joined, shingles_of, words_of
from quietcorpus.indexes.documents.pool_lists import by_list
from quietcorpus.mechanisms.sentences.deep_candidate import UNIT

_BANDS = 64
_MINIMA = 2 * _BANDS
_LEAST_EQUAL = 6  # minima of two texts that are compared word by word: those of a copy are 40
_WALKED = 8  # texts of a bucket, the last ones: boilerplate puts thousands into the same ones
_CHUNK = 1024  # texts that are compared with all earlier ones between two signs of life
_ROWS_AT_ONCE = 4096

Numbers = npt.NDArray[np.int64]


class _Met(NamedTuple):
    """The earlier texts that share a bucket with a text.

    Attributes:
        buckets: int32 (n, bands), of each text, or -1 if it has a bucket to itself.
        last: int32, the last text in each bucket, or -1.
        before: int32 (n, bands), the text before this one in its bucket, or -1.
        asked: int32 (n,), the last text that was compared with this one.
    """

    buckets: npt.NDArray[np.int32]
    last: npt.NDArray[np.int32]
    before: npt.NDArray[np.int32]
    asked: npt.NDArray[np.int32]


def unedited(
    texts: Sequence[str], on_compared: Callable[[int], object] = lambda _: None
) -> Numbers:
    """Return the numbers of texts that are an edited copy of no earlier one returned, in order.

    Two texts are copies if neither is short, the longer one has at most 1 + `EDITS` times the words
    of the shorter one, and that can be made of a passage of the other by at most `EDITS` edits for
    each of its words. Only those pairs are compared whose MinHash signatures meet in a band of two
    of 128 minima (Broder 1997; Leskovec, Rajaraman and Ullman, Mining of Massive Datasets, 3.4). A
    copy with 20 edits for each 100 words shares a third of all shingles and is missed once in
    2,000 times, one with 30 shares a fifth and is missed once in 15 times. In a band, a text is
    compared with 8 earlier ones at most, so that time is linear in the number of texts.

    Args:
        texts: the texts, valid UTF-8, at least one.
        on_compared: called with the number of texts compared.
    """
    words = joined(
        [
            words_of(pa.array(texts[start : start + _ROWS_AT_ONCE], pa.large_string()))
            for start in range(0, len(texts), _ROWS_AT_ONCE)
        ]
    )
    factors = np.random.default_rng(1).integers(2**64, size=_MINIMA, dtype=np.uint64) | np.uint64(1)
    signatures = _signatures(words, factors)
    met = _met(signatures, words.short)
    kept = np.ones(len(texts), np.bool_)
    for start in range(0, len(texts), _CHUNK):
        end = min(start + _CHUNK, len(texts))
        _compare(words, signatures, met, start, end, kept)
        on_compared(end)
    return np.flatnonzero(kept)


def _met(signatures: npt.NDArray[np.uint32], short: npt.NDArray[np.bool_]) -> _Met:
    """Put texts into buckets, in each band those of equal minima; short ones are in none."""
    bands = signatures.view(np.uint64)
    buckets = np.full(bands.shape, -1, np.int32)
    total = 0
    for band in range(bands.shape[1]):
        _, places, sizes = np.unique(bands[~short, band], return_inverse=True, return_counts=True)
        several = sizes > 1
        numbers = np.where(several, total - 1 + np.cumsum(several), -1)
        buckets[~short, band] = numbers[places]
        total += several.sum()
    return _Met(
        buckets,
        np.full(total, -1, np.int32),
        np.full(bands.shape, -1, np.int32),
        np.full(len(bands), -1, np.int32),
    )


@compiled
def _signatures(words, factors):  # type: ignore[no-untyped-def]
    """Return the least value of every hash function over each text's shingles, uint32 (n, m)."""
    offsets, high = words.offsets, np.uint64(32)
    found = np.full((len(words.short), len(factors)), 2**32 - 1, dtype=np.uint32)
    space = np.empty(np.diff(offsets).max(), dtype=np.uint64)
    for text in range(len(found)):
        least = found[text]
        count = shingles_of(words.hashes[offsets[text] : offsets[text + 1]], space)
        for shingle in space[:count]:
            for number in range(len(factors)):
                # Shingles are hashes: the high bits of a product with an odd number are, too.
                value = np.uint32((shingle * factors[number]) >> high)
                least[number] = min(least[number], value)
    return found


@compiled
def _compare(words, signatures, met, start, end, kept):  # type: ignore[no-untyped-def]
    """Mark the texts from `start` to `end` - 1 that are copies of an earlier one that is kept."""
    bands = met.buckets.shape[1]
    column = np.empty(np.diff(words.offsets).max() + 1, dtype=np.int64)
    for text in range(start, end):
        for band in range(bands):
            bucket = met.buckets[text, band]
            other = met.last[bucket] if bucket >= 0 else -1
            walked = 0
            while other >= 0 and walked < _WALKED and kept[text]:
                walked += 1
                if met.asked[other] != text:
                    met.asked[other] = text
                    kept[text] = not _are_copies(words, signatures, text, other, column)
                other = met.before[other, band]
        if kept[text]:
            for band in range(bands):
                bucket = met.buckets[text, band]
                if bucket >= 0:
                    met.before[text, band] = met.last[bucket]
                    met.last[bucket] = text


@compiled
def _are_copies(words, signatures, text, other, column):  # type: ignore[no-untyped-def]
    """Return whether two texts have minima in common, and few edits between them."""
    if (signatures[text] == signatures[other]).sum() < _LEAST_EQUAL:
        return False
    short = words.hashes[words.offsets[text] : words.offsets[text + 1]]
    long = words.hashes[words.offsets[other] : words.offsets[other + 1]]
    if len(long) < len(short):
        short, long = long, short
    alike = len(long) <= (1 + EDITS) * len(short)
    return alike and is_passage(short, long, int(EDITS * len(short)), column)


NEAR = 0.95
"""The cosine from which on two texts are joined: above it, they differ in a few words."""
SEARCHED = 8
"""The lists in which near texts are looked for, where there are too many to compare all."""
_LEAST = NEAR * UNIT**2  # of the product of two vectors on the grid
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
