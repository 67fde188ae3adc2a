"""Exact search by Euclidean distance: the nearest vector, and the words within a radius.

Exact search for the nearest vector by Euclidean distance, over the whole vocabulary.

Most of the work is a float32 matrix product, whose rounding depends on the library, the processor
and the size of the batch. Its result therefore only rules words out, by a rigorous bound on its
error; the few that are left are compared in float64. The word found is the same everywhere.

Distances of a vocabulary's words, and the words within a radius of a word.

Squared distances are added up in float64 in the order of the dimensions, without fused operations:
the numbers, and so the words within a radius, are the same everywhere. A square errs by
(D + 4) 2^-53 of itself at most: a difference, its square and D additions of positive numbers.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from quietcorpus.compiled import compiled, inlined, reordered

_QUERIES_AT_ONCE = 256
_WORDS_AT_ONCE = 1024
GROUP = 64  # words that are ruled out, or looked at again, together
_HALF_ULP = 2.0**-24
_HALF_ULP_64 = 2.0**-53
LONGEST_VECTOR, _LONGEST_QUERY = 2.0**40, 2.0**80  # their product is within float32


class EuclideanSearch:
    """A search of a vocabulary's vectors; of several nearest ones it finds the lowest id.

    Nearest is the least sum of (q - y)^2, added up in float64 in the order of the dimensions.
    """

    def __init__(self, vectors: npt.NDArray[np.float32]) -> None:
        """Keep `vectors`, float32 (V, d), without a copy, so that they may be mapped.

        Raises ValueError for vectors so long that products with them might overflow.
        """
        self._vectors = vectors
        halves = [
            np.square(vectors[start : start + _WORDS_AT_ONCE], dtype=np.float64).sum(axis=1) / 2
            for start in range(0, len(vectors), _WORDS_AT_ONCE)
        ]
        half = np.concatenate(halves)
        self._half = half.astype(np.float32)
        self._longest = float(np.sqrt(2 * half.max()))
        if not self._longest <= LONGEST_VECTOR:
            raise ValueError(f"a vector is longer than {LONGEST_VECTOR:g}, or not finite")

    @property
    def longest(self) -> float:
        """Return the length of the longest vector."""
        return self._longest

    def nearest(self, queries: npt.NDArray[np.float32]) -> npt.NDArray[np.int32]:
        """Find the id of the vector nearest to each query, int32 (n,); queries: float32 (n, d).

        Raises ValueError for a query that is not finite, or longer than any noise makes one.
        """
        return self.several(queries, 1)[0][:, 0]

    def several(
        self, queries: npt.NDArray[np.float32], count: int
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]:
        """Find the `count` vectors nearest to each query; see `VectorSearch`."""
        require_as_many(self._vectors, count)
        found = np.empty((len(queries), count), dtype=np.int32)
        squares = np.full((len(queries), count), np.inf)
        for start in range(0, len(queries), _QUERIES_AT_ONCE):
            own = slice(start, start + _QUERIES_AT_ONCE)
            chunk = queries[own]
            margin = 2 * self._error(chunk)
            maxima = self._group_maxima(chunk)
            _decide(self._vectors, self._half, chunk, maxima, margin, found[own], squares[own])
        return found, squares

    def _group_maxima(self, queries: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Return the largest q . y - ||y||^2 / 2, about, for each group of words and query."""
        groups = -(-len(self._vectors) // GROUP)
        maxima = np.empty((groups, len(queries)), dtype=np.float32)
        products = np.empty((_WORDS_AT_ONCE, len(queries)), dtype=np.float32)
        columns = np.ascontiguousarray(queries.T)
        for start in range(0, len(self._vectors), _WORDS_AT_ONCE):
            block = self._vectors[start : start + _WORDS_AT_ONCE]
            scores = np.matmul(block, columns, out=products[: len(block)])
            group_maxima(scores, self._half[start:], maxima[start // GROUP :])
        return maxima

    def _error(self, queries: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
        return score_error(queries, self._longest)


def require_as_many(vectors: npt.NDArray[np.float32], count: int) -> None:
    """Raise ValueError if a caller seeks more nearest vectors than there are."""
    if count > len(vectors):
        raise ValueError(f"{count} nearest words are sought, and there are {len(vectors)}")


def score_error(queries: npt.NDArray[np.float32], longest: float) -> npt.NDArray[np.float64]:
    """Bound the error of a score q . y - ||y||^2 / 2 in float32, float64 (n,).

    A product of d terms errs by at most gamma(d) ||q|| ||y||, in any order of additions
    (Higham, section 3.1; with fused operations or without, but in float32 throughout). Halving,
    rounding and subtracting ||y||^2 add three more half-ulps of either size. The last term is
    the error of the float64 sums that decide in the end, and of products that underflow.

    Args:
        queries: float32 (n, d).
        longest: the length of the longest y.

    Raises:
        ValueError: a query is not finite, or longer than any noise makes one.
    """
    terms = queries.shape[1] + 4
    length = lengths(queries)
    rounding = gamma(terms) * longest * (length + longest)
    error: npt.NDArray[np.float64] = rounding + _rest(terms, (length + longest) ** 2)
    return error


def distance_error(queries: npt.NDArray[np.float32], longest: float) -> npt.NDArray[np.float64]:
    """Bound the error of a squared distance ||q - y||^2 in float32, float64 (n,).

    It holds for a sum of squared differences and for ||q||^2 + ||y||^2 - 2 q . y, in any order of
    additions, with fused operations or without, but in float32 throughout. Every one of their
    terms passes through at most d + 2 roundings (Higham, section 3.1), and the terms' sizes add up
    to at most (||q|| + ||y||)^2. Two more roundings are allowed for; cutting a negative result off
    at zero only brings it nearer. The last term is the one of `score_error`.

    Args:
        queries: float32 (n, d).
        longest: the length of the longest y.

    Raises:
        ValueError: a query is not finite, or longer than any noise makes one.
    """
    terms = queries.shape[1] + 4
    square = (lengths(queries) + longest) ** 2
    error: npt.NDArray[np.float64] = gamma(terms) * square + _rest(terms, square)
    return error


def _rest(terms: int, square: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Bound the error of float64 sums of terms whose sizes add up to `square`, and of underflow."""
    rest: npt.NDArray[np.float64] = terms * (_HALF_ULP_64 * square + 2.0**-120)
    return rest


def greatest_length(vectors: npt.NDArray[np.float32]) -> float:
    """Return the length of the longest vector, float32 (V, d); NaN if a vector has none.

    Vectors are taken a few at a time: in float64 at once, millions would not fit memory.
    """
    blocks = (vectors[i : i + _WORDS_AT_ONCE] for i in range(0, len(vectors), _WORDS_AT_ONCE))
    return float(np.max([np.linalg.norm(b.astype(np.float64), axis=1).max() for b in blocks]))


def gamma(terms: int) -> float:
    """Return n u / (1 - n u), by which n roundings to float32 change a number at most."""
    return terms * _HALF_ULP / (1 - terms * _HALF_ULP)


def lengths(queries: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """Return the length of each query, float64 (n,).

    Raises ValueError for a query that is not finite, or longer than any noise makes one.
    """
    length: npt.NDArray[np.float64] = np.sqrt(np.square(queries, dtype=np.float64).sum(axis=1))
    if not (length <= _LONGEST_QUERY).all():
        raise ValueError("a query is not finite, or too long")
    return length


@compiled
def group_maxima(scores, half, maxima):  # type: ignore[no-untyped-def]
    """Write the largest score of each group of words to `maxima`, float32 (groups, n).

    `scores` are products, float32 (words, n), and `half` is the half to subtract for each word.
    """
    # The inner loops run over queries, so that compilers turn them into vector instructions. They
    # read one array and write another: a maximum written where it was read becomes a store under a
    # mask, and a processor without AVX-512 (AMD EPYC) took five times as long for it.
    words, queries = scores.shape
    largest = np.empty(queries, dtype=np.float32)
    larger = np.empty(queries, dtype=np.float32)
    for first in range(0, words, GROUP):
        last = min(first + GROUP, words) - 1
        for i in range(queries):
            largest[i] = scores[first, i] - half[first]
        for word in range(first + 1, last + 1, 2):  # in pairs, the last word perhaps twice
            other = min(word + 1, last)
            row, others = scores[word], scores[other]
            shift, others_shift = half[word], half[other]
            for i in range(queries):
                score = row[i] - shift
                second = others[i] - others_shift
                score = score if score > second else second
                larger[i] = score if score > largest[i] else largest[i]
            largest, larger = larger, largest
        group = maxima[first // GROUP]
        for i in range(queries):
            group[i] = largest[i]


@compiled
def _decide(vectors, half, queries, maxima, margin, found, least):  # type: ignore[no-untyped-def]
    """Find the few nearest words among the groups that may hold them.

    Scores of as many words, of different groups, are no lower than the last of as many largest
    maxima. A word's own score rules it out first, by the same bound as its group's; the rest are
    compared in float64.

    Args:
        vectors: float32 (V, d).
        half: float32 (V,), to subtract from products.
        queries: float32 (n, d).
        maxima: float32 (groups, n).
        margin: float64 (n,).
        found: int32 (n, few), to write the nearest words to, in order.
        least: float64 (n, few), infinite, to write their squared distances to.
    """
    groups, count = maxima.shape
    dimensions = vectors.shape[1]
    few = found.shape[1]
    largest = np.full((few, count), -np.float32(np.inf), dtype=np.float32)
    keep_largest(maxima, np.arange(count), largest)
    threshold = largest[few - 1] - margin
    for group in range(groups):
        for i in range(count):
            if maxima[group, i] >= threshold[i]:
                for word in range(group * GROUP, min((group + 1) * GROUP, len(vectors))):
                    if product(vectors[word], queries[i]) - half[word] < threshold[i]:
                        continue
                    distance = 0.0
                    for k in range(dimensions):
                        difference = np.float64(queries[i, k]) - np.float64(vectors[word, k])
                        distance += difference * difference
                    put_in_order(least[i], found[i], distance, word)


@compiled
def keep_largest(maxima, columns, largest):  # type: ignore[no-untyped-def]
    """Keep the largest maxima, float32 (groups, m), in m columns of `largest`, descending."""
    last = len(largest) - 1
    for group in range(len(maxima)):
        for i in range(len(columns)):
            value, column = maxima[group, i], columns[i]
            if value > largest[last, column]:
                place = last
                while place > 0 and value > largest[place - 1, column]:
                    largest[place, column] = largest[place - 1, column]
                    place -= 1
                largest[place, column] = value


@inlined
def put_in_order(least, found, distance, word):  # type: ignore[no-untyped-def]
    """Put a word among the nearest, of ascending distances, in its place; equal ones by number."""
    place = len(least)
    while place > 0 and (
        distance < least[place - 1] or (distance == least[place - 1] and word < found[place - 1])
    ):
        place -= 1
        if place < len(least) - 1:
            least[place + 1] = least[place]
            found[place + 1] = found[place]
    if place < len(least):
        least[place] = distance
        found[place] = word


@reordered
def product(vector, query):  # type: ignore[no-untyped-def]
    """Return a product of two vectors, float32 (d,), in float32; `score_error` bounds its error."""
    total = np.float32(0)
    for k in range(len(vector)):
        total += vector[k] * query[k]
    return total


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
