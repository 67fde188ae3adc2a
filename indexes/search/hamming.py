"""Exact search for the nearest code by Hamming distance, over the whole vocabulary."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from quietcorpus.compiled import compiled, inlined

_QUERIES_AT_ONCE = 256  # queries that, with their best matches, stay in the first-level cache
_STEP = 4  # words of a code in one pass


class HammingSearch:
    """A search of a vocabulary's codes; of several nearest ones it finds the lowest id."""

    def __init__(self, codes: npt.NDArray[np.uint64]) -> None:
        """Keep `codes`, uint64 (V, words), without a copy, so that they may be mapped."""
        self._codes = codes

    def nearest(self, queries: npt.NDArray[np.uint64]) -> npt.NDArray[np.int32]:
        """Find the id of the code nearest to each query, int32 (n,); queries: uint64 (n, words)."""
        found = np.empty(len(queries), dtype=np.int32)
        for start in range(0, len(queries), _QUERIES_AT_ONCE):
            chunk = np.ascontiguousarray(queries[start : start + _QUERIES_AT_ONCE].T)
            found[start : start + _QUERIES_AT_ONCE] = _nearest(self._codes, chunk)
        return found


@inlined
def ones(word):  # type: ignore[no-untyped-def]
    """Count the one-bits of a word; compilers replace this form by one instruction."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + (
        (word >> np.uint64(2)) & np.uint64(0x3333333333333333)
    )
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (word * np.uint64(0x0101010101010101)) >> np.uint64(56)


@compiled
def _nearest(codes, queries):  # type: ignore[no-untyped-def]
    """Find the code nearest to each query."""
    # The inner loops run over queries, so that compilers turn them into vector instructions.
    words, count = queries.shape
    # A distance and an id share one number: the smallest is the lowest id among the nearest.
    best = np.full(count, ~np.uint64(0), dtype=np.uint64)
    distances = np.zeros(count, dtype=np.uint64)
    whole = words // _STEP * _STEP
    for code in range(len(codes)):
        number = np.uint64(code)
        if words == _STEP:
            a, b, c, d = codes[code, 0], codes[code, 1], codes[code, 2], codes[code, 3]
            for i in range(count):
                distance = (
                    ones(queries[0, i] ^ a)
                    + ones(queries[1, i] ^ b)
                    + ones(queries[2, i] ^ c)
                    + ones(queries[3, i] ^ d)
                )
                key = distance << np.uint64(32) | number
                best[i] = key if key < best[i] else best[i]
            continue
        distances[:] = np.uint64(0)
        for word in range(0, whole, _STEP):
            a, b = codes[code, word], codes[code, word + 1]
            c, d = codes[code, word + 2], codes[code, word + 3]
            for i in range(count):
                distances[i] += (
                    ones(queries[word, i] ^ a)
                    + ones(queries[word + 1, i] ^ b)
                    + ones(queries[word + 2, i] ^ c)
                    + ones(queries[word + 3, i] ^ d)
                )
        for word in range(whole, words):
            a = codes[code, word]
            for i in range(count):
                distances[i] += ones(queries[word, i] ^ a)
        for i in range(count):
            key = distances[i] << np.uint64(32) | number
            best[i] = key if key < best[i] else best[i]
    return (best & np.uint64(0xFFFFFFFF)).astype(np.int32)
