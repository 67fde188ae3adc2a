"""The largest products of whole-number vectors, exact, with the lowest number first among equals.

Products of vectors of whole numbers whose squared lengths are at most `LARGEST_SQUARE` are whole
numbers of at most 2^23, and so is every sum of some of their terms (by the inequality of Cauchy and
Schwarz). Float32 holds them exactly, in any order of additions, fused or not. So what is found for
a query is the same on every machine, by every library, and in whatever company it is searched for.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from quietcorpus.compiled import compiled

LARGEST_SQUARE = 1 << 23
"""The largest squared length of a vector."""
_QUERIES_AT_ONCE = 128
_VECTORS_AT_ONCE = 2048  # whose products with these queries stay in the processor's cache
_ROWS_AT_ONCE = 4096
_GROUP = 64  # products that are passed over together
_BITS = 32
_LAST = (1 << _BITS) - 1
_NOTHING = np.iinfo(np.int64).min


class Largest:
    """The largest products of each query with the vectors that it was compared with so far.

    A product and its number are one whole number, the key, that orders them: the larger product
    comes first, and of equal ones the lower number. So the order of comparisons does not matter.
    """

    def __init__(self, queries: npt.NDArray[np.float32], count: int) -> None:
        """Begin with none for each query, float32 (n, d), of which `count` will be kept."""
        self._queries = queries
        self._keys = np.full((len(queries), count), _NOTHING, dtype=np.int64)

    def compare(
        self,
        rows: npt.NDArray[np.int64],
        vectors: npt.NDArray[np.float32],
        first: int,
        last: int,
    ) -> None:
        """Compare the queries `rows`, all different, with the vectors `first` to `last` - 1.

        No query may be compared with a vector twice.
        """
        own = self._queries[rows]
        for start in range(first, last, _VECTORS_AT_ONCE):
            block = vectors[start : min(start + _VECTORS_AT_ONCE, last)]
            _offer(self._keys, rows, own @ block.T, start)

    def numbers(self) -> npt.NDArray[np.int64]:
        """Return the numbers of the vectors, int64 (n, count), in order.

        Every query was compared with `count` vectors or more.
        """
        ordered = np.sort(self._keys, axis=1)[:, ::-1]
        found: npt.NDArray[np.int64] = _LAST - (ordered & _LAST)
        return found


def largest(
    queries: npt.NDArray[np.float32], vectors: npt.NDArray[np.float32], count: int
) -> npt.NDArray[np.int64]:
    """Find the numbers of the `count` vectors of the largest product, int64 (n, count), in order.

    `queries`, float32 (n, d), and `vectors`, float32 (m, d), are such as `are_short_and_whole`
    accepts, and `count` is at most m, which is below 2^32.
    """
    found = np.empty((len(queries), count), dtype=np.int64)
    for start in range(0, len(queries), _QUERIES_AT_ONCE):
        chunk = queries[start : start + _QUERIES_AT_ONCE]
        best = Largest(chunk, count)
        best.compare(np.arange(len(chunk)), vectors, 0, len(vectors))
        found[start : start + len(chunk)] = best.numbers()
    return found


@compiled
def _offer(keys, rows, products, first):  # type: ignore[no-untyped-def]
    """Keep the largest keys of each query in a heap, whose root is the least of them."""
    vectors = products.shape[1]
    for i in range(len(rows)):
        heap = keys[rows[i]]
        least = np.float32(heap[0] >> _BITS)
        for begin in range(0, vectors, _GROUP):
            end = min(begin + _GROUP, vectors)
            # Without a branch, so that compilers turn it into vector instructions.
            some = False
            for j in range(begin, end):
                some |= products[i, j] >= least
            if not some:
                continue
            for j in range(begin, end):
                if products[i, j] >= least:
                    key = (np.int64(products[i, j]) << _BITS) + (_LAST - (first + j))
                    if key > heap[0]:
                        _replace_root(heap, key)
                        least = np.float32(heap[0] >> _BITS)


@compiled
def _replace_root(heap, key):  # type: ignore[no-untyped-def]
    """Put a key in the place of the least one, and order the heap again."""
    place = 0
    while True:
        child = 2 * place + 1
        if child >= len(heap):
            break
        if child + 1 < len(heap) and heap[child + 1] < heap[child]:
            child += 1
        if key <= heap[child]:
            break
        heap[place] = heap[child]
        place = child
    heap[place] = key


def are_short_and_whole(vectors: npt.NDArray[np.float32]) -> bool:
    """Return whether all numbers are whole, and no vector is longer than products allow."""
    for start in range(0, len(vectors), _ROWS_AT_ONCE):
        exact = vectors[start : start + _ROWS_AT_ONCE].astype(np.float64)
        # Not a number equals nothing.
        if not np.array_equal(exact, np.rint(exact)):
            return False
        if not ((exact**2).sum(axis=1) <= LARGEST_SQUARE).all():
            return False
    return True
