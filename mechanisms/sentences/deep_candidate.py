"""DeepCandidate: a public document instead of a private one, for sentence-level privacy.

Meehan, Mrini and Chaudhuri: Sentence-level privacy for document embeddings (ACL 2022), sections 4.2
and 4.4. A document is a list of k sentence embeddings; candidates are embeddings of public
documents; one of them is drawn by how central it is among the document's sentences.

Those sections take the smallest depth over directions (`depth`); algorithm 1 in the appendix prints
the largest (`optimistic-depth`). Departing from the paper, the release is the drawn candidate's raw
mean embedding, where the paper's classifier sees recoded ones.

Utilities are integers that are computed exactly: embeddings are rounded to a grid first, so that
every product below is one of whole numbers and exact in floating point, whatever the order of
additions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from quietcorpus.compiled import compiled

from ..accounting.guarantees import SentencePrivacy
from ..encoding import Value
from ..noise.exponential import ExponentialMechanism, check_set

UNIT = 1 << 11
"""Steps of the grid in a unit vector's length: a product of two stays below 2^24, so that float32
holds every partial sum of it."""
TERM = 255
"""Steps of the grid from 0 to 1, for one sentence's contribution to a similarity."""
LARGEST_COORDINATE = 1 << 20
"""The largest whole number in a vector that is projected."""
_MOST_SENTENCES = 1 << 15
_CELLS = 1 << 22  # sentence-candidate products that are held at a time


class Utility(StrEnum):
    """The measures of how well a candidate represents a document.

    `depth`, `optimistic-depth` and `mean-depth` are the smallest, the largest and the mean depth of
    the candidate among the sentences, over the projections. `similarity` is the sum over sentences
    of a clipped cosine, and is not from the paper.
    """

    DEPTH = "depth"
    OPTIMISTIC_DEPTH = "optimistic-depth"
    MEAN_DEPTH = "mean-depth"
    SIMILARITY = "similarity"


@dataclass(frozen=True)
class DeepCandidate:
    """A draw of candidate f with probability proportional to exp(epsilon * u(x, f) / 2).

    Guarantee:
        For every two documents of equally many sentences that differ in one of them, and for every
        set S of candidates, Pr[M(x) in S] <= exp(epsilon) Pr[M(x') in S].
        Replacing a sentence changes every utility by at most its sensitivity: on each projection
        the number of sentences on either side of a candidate changes by at most one, and so do
        their minimum and, over projections, its smallest, largest and mean value; what one
        sentence adds to a similarity lies between 0 and 1.
        Utilities are whole numbers in units of 1 / `units`, and the draw is exact for ideal random
        bits; the bound is computational for the keyed stream.
    """

    epsilon: Fraction
    utility: Utility
    projections: int

    @property
    def stage_parameters(self) -> dict[str, Value]:
        """Return the stage parameters that the draw depends on."""
        return {
            "mechanism": "deep-candidate",
            "epsilon": self.epsilon,
            "utility": self.utility,
            "projections": self.projections,
        }

    @property
    def units(self) -> int:
        """Return the whole number that stands for a utility of 1, and so for the sensitivity."""
        if self.utility is Utility.MEAN_DEPTH:
            return self.projections
        return TERM if self.utility is Utility.SIMILARITY else 1

    @property
    def sampler(self) -> ExponentialMechanism:
        """Return the exponential mechanism on these whole numbers."""
        return ExponentialMechanism(self.epsilon, self.units)

    @property
    def guarantee(self) -> SentencePrivacy:
        """Return the guarantee for one document."""
        return SentencePrivacy(self.epsilon)


class Depths:
    """The depths of candidates among sentences, along public projections.

    On projection j the depth of f is min(#{s: s_j >= f_j}, #{s: s_j <= f_j}).
    """

    def __init__(self, projected: npt.NDArray[np.float64], utility: Utility) -> None:
        """Rank the candidates along every projection, `projected`, float64 (p, m)."""
        check_set(projected.shape[1])
        # A depth depends on a candidate only through its place among their distinct values.
        distinct = [np.unique(row, return_inverse=True) for row in projected]
        self._values = np.concatenate([values for values, _ in distinct])
        self._starts = np.cumsum([0, *(len(values) for values, _ in distinct)])
        self._ranks = np.array([ranks for _, ranks in distinct], dtype=np.int16)
        self._kind = (Utility.DEPTH, Utility.OPTIMISTIC_DEPTH, Utility.MEAN_DEPTH).index(utility)

    def utilities(
        self, sentences: npt.NDArray[np.float64], offsets: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int32]:
        """Compute the utility of each candidate for each document, int32 (n, m).

        Args:
            sentences: float64 (p, total), all sentences along every projection.
            offsets: int64 (n + 1,); document i has sentences offsets[i] .. offsets[i + 1].
        """
        _check_lengths(offsets)
        found: npt.NDArray[np.int32] = _depths(
            np.ascontiguousarray(sentences),
            offsets,
            self._values,
            self._starts,
            self._ranks,
            self._kind,
        )
        return found


class Similarities:
    """The similarities of candidates to documents: sums over sentences of clipped cosines.

    u(x, f) = sum over s of clip((cos(s, f) - low) / (high - low), 0, 1), each term rounded down to
    a multiple of 1 / TERM.
    """

    def __init__(self, candidates: npt.NDArray[np.float32], low: float, high: float) -> None:
        """Take `candidates`, float32 (m, d), unit vectors on the grid, and two cosines."""
        check_set(len(candidates))
        if not low < high:
            raise ValueError("the smallest cosine must be below the largest")
        self._candidates = np.ascontiguousarray(candidates.T)
        self._low = np.float64(low * UNIT**2)
        self._scale = TERM / np.float64((high - low) * UNIT**2)

    def utilities(
        self, sentences: npt.NDArray[np.float32], offsets: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int32]:
        """Compute the utility of each candidate for each document, int32 (n, m).

        Args:
            sentences: float32 (total, d), unit vectors on the grid.
            offsets: int64 (n + 1,); document i has sentences offsets[i] .. offsets[i + 1].
        """
        _check_lengths(offsets)
        size = self._candidates.shape[1]
        found = np.zeros((len(offsets) - 1, size), dtype=np.int32)
        for start, end in _spans(int(offsets[0]), int(offsets[-1]), max(1, _CELLS // size)):
            # Whole numbers below 2^24, whatever the order in which they are added.
            products = sentences[start:end] @ self._candidates
            _add_terms(found, products, start, offsets, self._low, self._scale)
        return found


def on_grid(vectors: npt.NDArray[np.floating]) -> npt.NDArray[np.float32]:
    """Scale each vector to length UNIT and round it to whole numbers; float32 (n, d).

    A vector of length zero stays as it is. Raises ValueError for values that are not finite.
    """
    exact = vectors.astype(np.float64)
    if not np.isfinite(exact).all():
        raise ValueError("an embedding is not finite")
    lengths = np.linalg.norm(exact, axis=1, keepdims=True)
    lengths[lengths == 0] = 1
    rounded: npt.NDArray[np.float64] = np.rint(exact / lengths * UNIT)
    return rounded.astype(np.float32)


def cosines(
    one: npt.NDArray[np.float32], other: npt.NDArray[np.float32]
) -> npt.NDArray[np.floating]:
    """Compute the cosines of vectors on the grid, (n, d) with (m, d): (n, m); 0 for a zero one."""
    lengths = [np.linalg.norm(vectors, axis=1) for vectors in (one, other)]
    found: npt.NDArray[np.floating] = one @ other.T / np.maximum(1, np.outer(*lengths))
    return found


def project(
    vectors: npt.NDArray[np.float64], projections: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Project vectors (n, d) on projections (p, d), both of whole numbers: float64 (p, n), exact.

    Raises ValueError where numbers are too large for an exact result.
    """
    reach = max(1.0, float(np.abs(projections).max(initial=0)))
    if np.abs(vectors).max(initial=0) > LARGEST_COORDINATE or (
        reach * LARGEST_COORDINATE * vectors.shape[1] >= 2.0**53
    ):
        raise ValueError("coordinates are too large for exact projections")
    return projections @ vectors.T


def _check_lengths(offsets: npt.NDArray[np.int64]) -> None:
    if np.diff(offsets).max(initial=0) >= _MOST_SENTENCES:
        raise ValueError(f"a document may have at most {_MOST_SENTENCES - 1} sentences")


def _spans(start: int, end: int, size: int) -> Iterator[tuple[int, int]]:
    for first in range(start, end, size):
        yield first, min(end, first + size)


@compiled
def _depths(sentences, offsets, values, starts, ranks, kind):  # type: ignore[no-untyped-def]
    documents = len(offsets) - 1
    projections, count = ranks.shape
    found = np.zeros((documents, count), dtype=np.int32)
    depths = np.empty(count, dtype=np.int16)
    active = np.empty(count, dtype=np.int32)
    for document in range(documents):
        first, end = offsets[document], offsets[document + 1]
        if first == end:
            continue
        utility = found[document]
        # `kind` is 0 for the smallest, 1 for the largest, 2 for the sum over the projections.
        if kind == 0:
            utility[:] = end - first
        for candidate in range(count):
            active[candidate] = candidate
        left = count
        for projection in range(projections):
            own = values[starts[projection] : starts[projection + 1]]
            some = np.sort(sentences[projection, first:end])
            _fill(depths, own, some)
            rank = ranks[projection]
            if kind == 1:
                for candidate in range(count):
                    utility[candidate] = max(utility[candidate], depths[rank[candidate]])
            elif kind == 2:
                for candidate in range(count):
                    utility[candidate] += depths[rank[candidate]]
            else:
                # A smallest depth of 0 stays 0, so that fewer and fewer candidates are left.
                kept = 0
                for position in range(left):
                    candidate = active[position]
                    depth = min(utility[candidate], depths[rank[candidate]])
                    utility[candidate] = depth
                    active[kept] = candidate
                    kept += depth > 0
                left = kept
                if left == 0:
                    break
    return found


@compiled
def _fill(depths, values, sentences):  # type: ignore[no-untyped-def]
    """Set depths[r] to min(#{s >= values[r]}, #{s <= values[r]}); values and sentences ascend."""
    count = len(sentences)
    rank = 0
    below = upto = 0  # sentences that are less than, and at most, the value
    size = len(values)
    while rank < size:
        value = values[rank]
        while upto < count and sentences[upto] <= value:
            upto += 1
        while below < count and sentences[below] < value:
            below += 1
        depth = min(count - below, upto)
        # Up to the next sentence nothing changes, unless one lies on the value itself.
        if below == upto:
            stop = size
            if upto < count:
                stop = rank + np.searchsorted(values[rank:], sentences[upto])
            depths[rank:stop] = depth
            rank = stop
        else:
            depths[rank] = depth
            rank += 1


@compiled
def _add_terms(found, products, start, offsets, low, scale):  # type: ignore[no-untyped-def]
    document = 0
    for row in range(len(products)):
        while offsets[document + 1] <= start + row:
            document += 1
        for candidate in range(products.shape[1]):
            # Clipped at 0 first, the conversion to an integer rounds down.
            term = (np.float64(products[row, candidate]) - low) * scale
            found[document, candidate] += np.int32(min(max(term, 0.0), np.float64(TERM)))
