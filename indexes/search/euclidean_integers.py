"""Exact search whose first pass is a product of whole numbers, of eight bits a value.

The product of matrices of bytes, exact in 32 bits, by ONNX Runtime where it is installed.

A word y stands for scale * Y and a query q for scale * Q, with whole numbers Y and Q; call these q'
and y'. Then |q . y - q' . y'| <= |q'| |y - y'| + |q - q'| |y|, which bounds every word's score from
above. Words whose bound is below a score that another word is sure to have are ruled out. The
others get a score in float32, and then a distance in float64, as in `EuclideanSearch`, whose
answers these are.
"""

from __future__ import annotations

import functools
import importlib.util
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from quietcorpus.compiled import compiled, inlined

from ..onnx_runtime import MODULE, onnxruntime
from .euclidean import EuclideanSearch, gamma, product, score_error

# One node, MatMulInteger of uint8 (m, k) and int8 (k, n): `onnx` itself is not needed.
GRAPH = (
    b'\x08\x08:b\n\x18\n\x01A\n\x01B\x12\x01C"\rMatMulInteger\x12\x01gZ\x15\n\x01A\x12\x10\n\x0e'
    b"\x08\x02\x12\n\n\x03\x12\x01m\n\x03\x12\x01kZ\x15\n\x01B\x12\x10\n\x0e\x08\x03\x12\n\n\x03"
    b"\x12\x01k\n\x03\x12\x01nb\x15\n\x01C\x12\x10\n\x0e\x08\x06\x12\n\n\x03\x12\x01m\n\x03\x12"
    b"\x01nB\x04\n\x00\x10\r"
)


def is_installed() -> bool:
    """Return whether the library of the product is installed."""
    return importlib.util.find_spec(MODULE) is not None


class IntegerProduct:
    """A product whose factors and result stay where they are: change a factor, and compute again.

    Some processors add pairs of products in 16 bits. So that none overflows, no two neighbouring
    products may add up to more than 2^15 - 1: the factors' largest sizes have a product below 2^14.
    """

    def __init__(
        self,
        one: npt.NDArray[np.uint8],
        other: npt.NDArray[np.int8],
        result: npt.NDArray[np.int32],
    ) -> None:
        """Bind the factors, uint8 (m, k) and int8 (k, n), and the result, int32 (m, n).

        All are C-contiguous. Raises ImportError if the library does not load.
        """
        self._session = _session()
        self._held = one, other, result
        self._binding = self._session.io_binding()
        self._binding.bind_cpu_input("A", one)
        self._binding.bind_cpu_input("B", other)
        self._binding.bind_output("C", "cpu", 0, np.int32, list(result.shape), result.ctypes.data)

    def compute(self) -> None:
        """Write the product of the factors, as they are now, to the result."""
        self._session.run_with_iobinding(self._binding)


@functools.cache
def _session() -> Any:
    module = onnxruntime()
    options = module.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # a worker for every processor
    options.log_severity_level = 3
    return module.InferenceSession(GRAPH, options, providers=["CPUExecutionProvider"])


FEWEST_QUERIES = 128
"""With fewer, rounding the words takes longer than the product saves."""
MOST_DIMENSIONS = 2048
"""So that products of whole numbers are below 2^24, and exact in float32."""
_QUERIES_AT_ONCE = 512
_WORDS_AT_ONCE = 1024
_GROUP = 32
_MOST_NOTED = 64
_WORD, _QUERY = 63, 127  # the largest whole numbers; their product is below 2^14
_MIDDLE = 64  # added to a word's, which are then positive
_LEAST_SCALE = 2.0**-100  # smaller vectors are rounded to zero
_UP = 1 + 2.0**-20


class IntegerSearch(EuclideanSearch):
    """The search of `EuclideanSearch`, faster for batches, by `IntegerProduct`."""

    @cached_property
    def _words(self) -> npt.NDArray[np.float32]:
        # It reads all vectors, and texts that are released one by one do not need it.
        measured: npt.NDArray[np.float32] = _measured(self._vectors, self._half)
        return measured

    def nearest(self, queries: npt.NDArray[np.float32]) -> npt.NDArray[np.int32]:
        """Find the id of the vector nearest to each query, int32 (n,); queries: float32 (n, d).

        Raises ValueError for a query that is not finite, or longer than any noise makes one.
        """
        if len(queries) < FEWEST_QUERIES or queries.shape[1] > MOST_DIMENSIONS:
            return super().nearest(queries)
        try:
            return np.concatenate(
                [
                    self.nearest_in_batch(queries[start : start + _QUERIES_AT_ONCE])
                    for start in range(0, len(queries), _QUERIES_AT_ONCE)
                ]
            )
        except ImportError:
            return super().nearest(queries)

    def nearest_in_batch(self, queries: npt.NDArray[np.float32]) -> npt.NDArray[np.int32]:
        """Find the id of the vector nearest to each query, in one batch of any size.

        Raises ImportError if the library of the product does not load, and ValueError as `nearest`.
        """
        count, dimensions = queries.shape
        errors = score_error(queries, self._longest)
        whole, bounds = _rounded_queries(queries, self._longest, errors)
        columns = np.ascontiguousarray(whole.T)
        offsets = _MIDDLE * whole.sum(axis=1, dtype=np.int32)
        block = np.empty((min(_WORDS_AT_ONCE, len(self._vectors)), dimensions), dtype=np.uint8)
        products = np.empty((len(block), count), dtype=np.int32)
        multiplied = IntegerProduct(block, columns, products)
        room = count, _MOST_NOTED
        noted = (
            np.empty(room, dtype=np.int32),
            np.empty(room, dtype=np.float32),
            np.zeros(count, dtype=np.int64),
        )
        nearest = np.full(count, -np.inf), np.full(count, np.inf), np.zeros(count, dtype=np.int32)
        for start in range(0, len(self._vectors), len(block)):
            stop = min(start + len(block), len(self._vectors))
            _round_words(self._vectors[start:stop], self._words[start:stop], block)
            multiplied.compute()
            place = self._vectors, self._words, start, stop
            _compare(place, queries, products, offsets, bounds, errors, noted, nearest)
        _settle_all(self._vectors, self._words, queries, errors, noted, nearest)
        return nearest[2]


def _rounded_queries(
    queries: npt.NDArray[np.float32], longest: float, errors: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32]]:
    """Return whole numbers, int8 (n, d), and what scores and bounds are made of, float32 (4, n).

    `errors` are those of scores in float32, float64 (n,). The parts of a bound are the scale, |q'|,
    |q - q'|, and what all else adds to an error: rounding to float32, the error of the float64 sums
    that decide in the end, and underflow.
    """
    scales = (np.abs(queries).max(axis=1) / np.float32(_QUERY)).astype(np.float32)
    scales[scales < _LEAST_SCALE] = 0
    steps = np.where(scales > 0, scales, np.inf).astype(np.float64)
    whole = np.clip(np.rint(queries / steps[:, None]), -_QUERY, _QUERY)
    stand = whole * scales[:, None].astype(np.float64)
    rounded = np.sqrt(np.square(stand).sum(axis=1)) * _UP
    missing = np.sqrt(np.square(queries - stand).sum(axis=1)) * _UP
    # A score passes through fewer than ten roundings, of numbers within (|q'| + 2 |y|) 2 |y|.
    rest = gamma(16) * 2 * longest * (rounded + 2 * longest)
    rest += errors
    bounds = np.stack([scales, rounded, missing, rest * _UP])
    return whole.astype(np.int8), bounds.astype(np.float32)


@inlined
def _whole(value, inverse):  # type: ignore[no-untyped-def]
    return min(max(np.rint(value * inverse), np.float32(-_WORD)), np.float32(_WORD))


@inlined
def _inverse(scale):  # type: ignore[no-untyped-def]
    return np.float32(1) / scale if scale > 0 else np.float32(0)


@compiled
def _measured(vectors, half):  # type: ignore[no-untyped-def]
    """Return each word's scale, half its square, |y - y'| and |y|, float32 (V, 4)."""
    measured = np.empty((len(vectors), 4), dtype=np.float32)
    for word in range(len(vectors)):
        vector = vectors[word]
        largest = np.float32(0)
        for value in vector:
            largest = max(largest, abs(value))
        scale = largest / np.float32(_WORD)
        if scale < _LEAST_SCALE:
            scale = np.float32(0)
        inverse = _inverse(scale)
        missing = 0.0
        square = 0.0
        for value in vector:
            difference = np.float64(value) - np.float64(scale) * np.float64(_whole(value, inverse))
            missing += difference * difference
            square += np.float64(value) * np.float64(value)
        measured[word, 0] = scale
        measured[word, 1] = half[word]
        measured[word, 2] = np.sqrt(missing) * _UP
        measured[word, 3] = np.sqrt(square) * _UP
    return measured


@compiled
def _round_words(vectors, words, block):  # type: ignore[no-untyped-def]
    """Write the whole numbers of words to a block, uint8 (words, d)."""
    middle = np.float32(_MIDDLE)
    for word in range(len(vectors)):
        inverse = _inverse(words[word, 0])
        vector, row = vectors[word], block[word]
        for k in range(len(vector)):
            row[k] = np.uint8(_whole(vector[k], inverse) + middle)


@inlined
def _score(whole, word, scale):  # type: ignore[no-untyped-def]
    return np.float32(whole) * word[0] * scale - word[1]


@inlined
def _bound(score, far, length, bounds, i):  # type: ignore[no-untyped-def]
    return score + bounds[1, i] * far + bounds[2, i] * length + bounds[3, i]


@compiled
def _group_maxima(products, words, offsets, scales, maxima):  # type: ignore[no-untyped-def]
    """Write the largest score of each group of words, float32 (groups, n).

    Returns the largest |y - y'| and |y| of each group, float32 (groups, 2).
    """
    # As in `group_maxima`, one array is read and another is written.
    count = len(offsets)
    largest = np.empty(count, dtype=np.float32)
    larger = np.empty(count, dtype=np.float32)
    sizes = np.zeros((len(maxima), 2), dtype=np.float32)
    for group in range(len(maxima)):
        largest[:] = -np.inf
        for word in range(group * _GROUP, min((group + 1) * _GROUP, len(words))):
            row, scale, half = products[word], words[word, 0], words[word, 1]
            for i in range(count):
                score = np.float32(row[i] - offsets[i]) * scale * scales[i] - half
                larger[i] = score if score > largest[i] else largest[i]
            largest, larger = larger, largest
            sizes[group, 0] = max(sizes[group, 0], words[word, 2])
            sizes[group, 1] = max(sizes[group, 1], words[word, 3])
        for i in range(count):
            maxima[group, i] = largest[i]
    return sizes


@compiled
def _compare(block, queries, products, offsets, bounds, errors, noted, nearest):  # type: ignore[no-untyped-def]
    """Note the words of a block that may be the nearest to a query.

    Args:
        block: the vectors of all words, float32 (V, d), what `_measured` returned for them, and
            the numbers of the block's first word and of the one after its last.
        queries: float32 (n, d).
        products: of whole numbers, int32 (words, n), where a word's are larger by `_MIDDLE`.
        offsets: what that adds to a query's products, int32 (n,).
        bounds: what `_rounded_queries` returned for them.
        errors: of scores in float32, float64 (n,).
        noted: words and bounds on their scores, int32 and float32 (n, most), and how many, (n,).
        nearest: a score that some word is sure to reach, a distance, and the word it is to.
    """
    vectors, measured, start, stop = block
    words = measured[start:stop]
    maxima = np.empty((-(-len(words) // _GROUP), len(queries)), dtype=np.float32)
    sizes = _group_maxima(products, words, offsets, bounds[0], maxima)
    sure = nearest[0]
    _lead(block, queries, products, offsets, bounds, errors, sure, maxima, sizes)
    ids, their_bounds, counts = noted
    for group in range(len(maxima)):
        if not _any_may_be_nearer(maxima[group], sizes[group], bounds, sure):
            continue
        for i in range(len(queries)):
            if _bound(maxima[group, i], sizes[group, 0], sizes[group, 1], bounds, i) < sure[i]:
                continue
            for word in range(group * _GROUP, min((group + 1) * _GROUP, len(words))):
                own = words[word]
                score = _score(products[word, i] - offsets[i], own, bounds[0, i])
                bound = _bound(score, own[2], own[3], bounds, i)
                if bound < sure[i]:
                    continue
                if counts[i] == ids.shape[1]:
                    _settle(vectors, measured, queries, errors, noted, nearest, i)
                ids[i, counts[i]], their_bounds[i, counts[i]] = start + word, bound
                counts[i] += 1


@compiled
def _lead(block, queries, products, offsets, bounds, errors, sure, maxima, sizes):  # type: ignore[no-untyped-def]
    """Raise what is sure to the float32 scores of words that lead by their whole numbers.

    Compared with those, far fewer words are left than if every score had a separate error.
    """
    vectors, measured, start, stop = block
    words = measured[start:stop]
    count = len(queries)
    best = np.full(count, -np.inf, dtype=np.float32)
    for group in range(len(maxima)):
        for i in range(count):
            best[i] = maxima[group, i] if maxima[group, i] > best[i] else best[i]
    far, length = sizes[:, 0].max(), sizes[:, 1].max()
    for i in range(count):
        if _bound(best[i], far, length, bounds, i) < sure[i]:
            continue
        group = 0
        while maxima[group, i] < best[i]:
            group += 1
        leader, ahead = 0, np.float32(-np.inf)
        for word in range(group * _GROUP, min((group + 1) * _GROUP, len(words))):
            score = _score(products[word, i] - offsets[i], words[word], bounds[0, i])
            leader, ahead = (word, score) if score > ahead else (leader, ahead)
        near = np.float64(product(vectors[start + leader], queries[i]) - words[leader, 1])
        sure[i] = max(sure[i], near - errors[i])


@compiled
def _settle(vectors, measured, queries, errors, noted, nearest, i):  # type: ignore[no-untyped-def]
    """Compare the words that are noted for a query, in order, in float32 and then in float64."""
    ids, bounds, counts = noted
    sure, least, found = nearest
    query = queries[i]
    for position in range(counts[i]):
        word = ids[i, position]
        if bounds[i, position] < sure[i]:
            continue
        near = np.float64(product(vectors[word], query) - measured[word, 1])
        if near + errors[i] < sure[i]:
            continue
        sure[i] = max(sure[i], near - errors[i])
        distance = 0.0
        for k in range(len(query)):
            difference = np.float64(query[k]) - np.float64(vectors[word, k])
            distance += difference * difference
        if distance < least[i]:
            least[i], found[i] = distance, word
    counts[i] = 0


@compiled
def _settle_all(vectors, measured, queries, errors, noted, nearest):  # type: ignore[no-untyped-def]
    for i in range(len(queries)):
        _settle(vectors, measured, queries, errors, noted, nearest, i)


@compiled
def _any_may_be_nearer(maxima, sizes, bounds, sure):  # type: ignore[no-untyped-def]
    """Return whether a word of a group may be nearer than what is sure, to any query."""
    far, length = sizes
    rounded, missing, rest = bounds[1], bounds[2], bounds[3]
    found = 0
    for i in range(len(sure)):
        bound = maxima[i] + rounded[i] * far + missing[i] * length + rest[i]
        found += bound >= sure[i]
    return found > 0
