"""Fast simulation of word mechanisms' outputs: for calibration on public vectors, never a release.

NumPy's generators draw here, and the words of a block share their noise. Either would be a fault in
a mechanism, but not in an estimate: the draws of any one word are independent of each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Protocol

import numpy as np
import numpy.typing as npt

from quietcorpus.indexes.hamming import HammingSearch
from quietcorpus.indexes.search import Search, VectorSearch
from quietcorpus.indexes.within import Within
from quietcorpus.mechanisms.words.vickrey import choice

from .max_plus import GROUP, improve

_DRAWS_AT_ONCE = 1024  # a group of rows of so many float32 stays in the first-level cache
_QUERIES_TOGETHER = 2048  # searches may be faster, the more queries they get
_WORDS_AT_ONCE = 32 * GROUP  # with the draws, a tile that fits the second-level cache


class Simulator(Protocol):
    """A mechanism on a vocabulary of `size` words."""

    @property
    def size(self) -> int:
        """Return the number of words V; outputs are 0 .. V - 1."""

    def outputs(
        self,
        words: npt.NDArray[np.int64],
        epsilons: Sequence[float],
        draws: int,
        generator: np.random.Generator,
    ) -> npt.NDArray[np.int32]:
        """Draw the output for each epsilon, word and draw: int32 (E, n, draws).

        For one epsilon and one word, the draws are independent and follow the mechanism's law.
        Words and epsilons share the noise (common random numbers), so that estimates are smooth
        in epsilon.
        """


class MadlibSimulator:
    """Madlib (Feyisetan et al., WSDM 2020): the word nearest to phi(w) + z / epsilon.

    With score_j(q) = q . y_j - ||y_j||^2 / 2, the nearest word is the one of the largest score, and
    epsilon score_j(phi + z / epsilon) = epsilon score_j(phi) + z . y_j. The first term is a small
    matrix product over words, the second one over draws, and both are shared. The search for each
    word and draw then takes one addition and one comparison per candidate. All is float32, so that
    rounding may decide between two words that are almost equally near; among exactly equal scores
    the lowest id is taken.

    That is what exact search finds, without searching. Of another search only its answers are
    known, so every draw is searched for, as in a release.
    """

    def __init__(self, vectors: npt.NDArray[np.float32], search: Search | None = None) -> None:
        """Keep `vectors`, float32 (V, d), without a copy, so that they may be mapped.

        `search` is the search that finds words; None for any that finds what exact search finds.
        """
        self._vectors = vectors
        self._search = search
        self._centre = vectors.mean(axis=0, dtype=np.float64).astype(np.float32)

    @property
    def size(self) -> int:
        """Return the number of words."""
        return len(self._vectors)

    def outputs(
        self,
        words: npt.NDArray[np.int64],
        epsilons: Sequence[float],
        draws: int,
        generator: np.random.Generator,
    ) -> npt.NDArray[np.int32]:
        """See `Simulator`; epsilon is per unit of Euclidean distance."""
        noise = unit_noise(self._vectors.shape[1], draws, generator)
        if self._search is not None:
            return searched(self._search.nearest, self._vectors, words, epsilons, noise)
        origins = self._vectors[words] - self._centre
        parts = [
            self._nearest(origins, epsilons, noise[start : start + _DRAWS_AT_ONCE])
            for start in range(0, draws, _DRAWS_AT_ONCE)
        ]
        return np.concatenate(parts, axis=2)

    def _nearest(
        self,
        origins: npt.NDArray[np.float32],
        epsilons: Sequence[float],
        noise: npt.NDArray[np.float32],
    ) -> npt.NDArray[np.int32]:
        shape = (len(epsilons), len(origins), len(noise))
        best = np.full(shape, -np.inf, dtype=np.float32)
        found = np.zeros(shape, dtype=np.int32)
        group = np.full(shape[1:], -1, dtype=np.int32)
        columns = np.ascontiguousarray(noise.T)
        for start in range(0, self.size, _WORDS_AT_ONCE):
            # Distances from the centre are shorter, and so lose less to rounding.
            tile = self._vectors[start : start + _WORDS_AT_ONCE] - self._centre
            half = np.einsum("ij,ij->i", tile, tile) / np.float32(2)
            own = np.full((len(origins), _WORDS_AT_ONCE), -np.inf, dtype=np.float32)
            own[:, : len(tile)] = origins @ tile.T - half
            drawn = np.zeros((_WORDS_AT_ONCE, len(noise)), dtype=np.float32)
            np.matmul(tile, columns, out=drawn[: len(tile)])
            for e, epsilon in enumerate(epsilons):
                scaled = own * np.float32(epsilon)
                improve(scaled, drawn, best[e], group, found[e], np.int32(start))
        return found


class VickreySimulator:
    """Madlib's noise, and Vickrey's choice of the two nearest words (Xu et al. 2021).

    The choice needs both distances, so that every draw is searched for, as in a release.
    """

    def __init__(
        self, vectors: npt.NDArray[np.float32], search: VectorSearch, tuning: Fraction
    ) -> None:
        """Keep `vectors`, float32 (V, d), uncopied, the search that finds words, and t."""
        self._vectors, self._search, self._tuning = vectors, search, tuning

    @property
    def size(self) -> int:
        """Return the number of words."""
        return len(self._vectors)

    def outputs(
        self,
        words: npt.NDArray[np.int64],
        epsilons: Sequence[float],
        draws: int,
        generator: np.random.Generator,
    ) -> npt.NDArray[np.int32]:
        """See `Simulator`; epsilon is per unit of Euclidean distance."""
        noise = unit_noise(self._vectors.shape[1], draws, generator)
        uniforms = generator.random(draws)

        def find(queries: npt.NDArray[np.float32]) -> npt.NDArray[np.int32]:
            coins = np.tile(uniforms, len(queries) // draws)
            return choice(*self._search.several(queries, 2), self._tuning, coins)

        return searched(find, self._vectors, words, epsilons, noise)


def searched(
    find: Callable[[npt.NDArray[np.float32]], npt.NDArray[np.int32]],
    vectors: npt.NDArray[np.float32],
    words: npt.NDArray[np.int64],
    epsilons: Sequence[float],
    noise: npt.NDArray[np.float32],
) -> npt.NDArray[np.int32]:
    """Find the words of noisy vectors, int32 (E, n, draws); each query is one word's, and a draw's.

    `find` gets whole words' queries, those of each in the order of the draws.
    """
    outputs = np.empty((len(epsilons), len(words), len(noise)), dtype=np.int32)
    together = max(1, _QUERIES_TOGETHER // len(noise))
    for e, epsilon in enumerate(epsilons):
        scaled = noise / np.float32(epsilon)
        for start in range(0, len(words), together):
            own = vectors[words[start : start + together]]
            queries = (own[:, None] + scaled[None]).reshape(-1, own.shape[1])
            outputs[e, start : start + together] = find(queries).reshape(len(own), len(noise))
    return outputs


def unit_noise(
    dimensions: int, draws: int, generator: np.random.Generator
) -> npt.NDArray[np.float32]:
    """Draw noise of density proportional to exp(-||z||), float32 (draws, d).

    It is a scale mixture of normals, N(0, I) sqrt(2 Gamma((d + 1) / 2, 1)).
    """
    normal = generator.standard_normal((draws, dimensions))
    scale = np.sqrt(2 * generator.standard_gamma((dimensions + 1) / 2, size=draws))
    return (normal * scale[:, None]).astype(np.float32)


class DistanceSimulator:
    """A draw of word x by the weight exp(-epsilon min(d(w, x), gamma) / 2).

    This is TEM (Carvalho et al. 2021) and, with an infinite gamma, the exponential mechanism over
    the vocabulary (Yue et al. 2021). Laws are computed whole, in float64, and inverted.
    """

    def __init__(self, vectors: npt.NDArray[np.float32], gamma: Callable[[float], float]) -> None:
        """Keep `vectors`, float32 (V, d), uncopied; `gamma` is a function of epsilon."""
        self._distances, self._gamma = Within(vectors), gamma

    @property
    def size(self) -> int:
        """Return the number of words."""
        return self._distances.size

    def outputs(
        self,
        words: npt.NDArray[np.int64],
        epsilons: Sequence[float],
        draws: int,
        generator: np.random.Generator,
    ) -> npt.NDArray[np.int32]:
        """See `Simulator`; epsilon is per unit of Euclidean distance."""
        uniforms = generator.random(draws)
        outputs = np.empty((len(epsilons), len(words), draws), dtype=np.int32)
        for i, word in enumerate(words.astype(np.int32)):
            _, _, squares = self._distances.within(np.array([word]), np.inf)
            distances = np.sqrt(squares)
            for e, epsilon in enumerate(epsilons):
                counted = np.minimum(distances, self._gamma(epsilon))
                sums = np.cumsum(np.exp(-epsilon / 2 * counted))
                found = np.searchsorted(sums, uniforms * sums[-1], side="right")
                outputs[e, i] = np.minimum(found, self.size - 1)
        return outputs


class BrrSimulator:
    """BRR (Carvalho et al., ICML 2021 workshop): the code nearest to one with random flips.

    Every bit flips with probability 1 / (1 + exp(epsilon)); of several nearest codes, the lowest id
    is taken.
    """

    def __init__(self, codes: npt.NDArray[np.uint64]) -> None:
        """Keep `codes`, uint64 (V, words of 64 bits), uncopied, so that they may be mapped."""
        self._codes = codes
        self._search = HammingSearch(codes)

    @property
    def size(self) -> int:
        """Return the number of words."""
        return len(self._codes)

    def outputs(
        self,
        words: npt.NDArray[np.int64],
        epsilons: Sequence[float],
        draws: int,
        generator: np.random.Generator,
    ) -> npt.NDArray[np.int32]:
        """See `Simulator`; epsilon is per bit."""
        width = self._codes.shape[1]
        uniforms = generator.random((draws, 64 * width))
        outputs = np.empty((len(epsilons), len(words), draws), dtype=np.int32)
        for e, epsilon in enumerate(epsilons):
            flips = uniforms < np.exp(-np.logaddexp(0, epsilon))
            masks = np.packbits(flips, axis=1).view(np.uint64)
            for i, word in enumerate(words):
                outputs[e, i] = self._search.nearest(self._codes[word] ^ masks)
        return outputs
