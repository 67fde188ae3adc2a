"""Corpus-wide counts: the private term histogram, and the private choice of a vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ..accounting.guarantees import LimitedPrecision
from ..encoding import Value
from ..keystream import Keystream
from ..noise.geometric import DenseNoise, TwoSidedGeometric

Counts = npt.NDArray[np.int64]
"""Counts over the vocabulary, exact or noisy, int64 (V,)."""

_TAIL_BITS = 4096
"""Precision of a tail probability: it resolves any delta of practical size many times over."""


@dataclass(frozen=True)
class Histogram:
    """The corpus's term counts plus two-sided geometric noise at rate epsilon / N.

    Guarantee:
        The noisy counts are (N, epsilon)-limited-precision private: a change of at most N in the
        L1 norm of one document's bag is the same change of the corpus's counts.
    """

    precision: int
    epsilon: Fraction

    @property
    def stage_parameters(self) -> dict[str, Value]:
        """Return the stage parameters that the noise depends on."""
        return {"precision": self.precision, "epsilon": self.epsilon}

    @property
    def guarantee(self) -> LimitedPrecision:
        """Return the guarantee of the noisy counts."""
        return LimitedPrecision(self.precision, self.epsilon)

    def noise(self, size: int) -> DenseNoise:
        """Return the sampler of the noise on `size` counts."""
        return DenseNoise(self.epsilon / self.precision, size)

    def release(self, counts: npt.NDArray[np.int64], stream: Keystream) -> npt.NDArray[np.int64]:
        """Add noise to exact `counts`, int64 (V,); the result, int64 (V,), may be negative."""
        address = stream.addresses("histogram", [0], [counts.tobytes()])
        noise = self.noise(len(counts)).sample(stream, address)[0]
        noisy: npt.NDArray[np.int64] = counts + noise
        return noisy


@dataclass(frozen=True)
class ThresholdedVocabulary:
    """The terms whose noisy document frequency reaches a threshold.

    A stability-based histogram (Korolova et al. 2009; Bun, Nissim and Stemmer 2016) on document
    frequencies: a document counts once for every distinct term it holds.

    Guarantee:
        The released set of terms is (N, epsilon, delta)-limited-precision private.
        A change of at most N in the L1 norm of one document's bag changes at most N document
        frequencies, each by one, so noise at rate epsilon / N costs epsilon on the terms that
        both corpora hold.
        A term that only one of the two holds has frequency 1 there; at most N are such, counting
        both corpora's, and each is released with probability at most delta / N.
    """

    precision: int
    epsilon: Fraction
    delta: Fraction

    @property
    def stage_parameters(self) -> dict[str, Value]:
        """Return the stage parameters that the selection depends on."""
        return {
            "mechanism": "thresholded-frequencies",
            "precision": self.precision,
            "epsilon": self.epsilon,
            "delta": self.delta,
        }

    @property
    def guarantee(self) -> LimitedPrecision:
        """Return the guarantee of the set of terms."""
        return LimitedPrecision(self.precision, self.epsilon, self.delta)

    @property
    def noise(self) -> DenseNoise:
        """Return the sampler of the noise on one frequency."""
        return DenseNoise(self.epsilon / self.precision, 1)

    @cached_property
    def threshold(self) -> int:
        """Find the least T >= 2 with N * Pr[1 + Z >= T] <= delta, by bounds that err upwards."""
        law = TwoSidedGeometric(self.epsilon / self.precision)

        def leaks(threshold: int) -> bool:
            upper = Fraction(law.tail(threshold - 1, _TAIL_BITS)[1], 1 << _TAIL_BITS)
            return self.precision * upper > self.delta

        low, high = 1, 2
        while leaks(high):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if leaks(middle) else (low, middle)
        return high

    def select(
        self, terms: Sequence[bytes], frequencies: Sequence[int], stream: Keystream
    ) -> npt.NDArray[np.bool_]:
        """Select the `terms` to release, by their (non-zero) document `frequencies`: bool (n,)."""
        addresses = stream.addresses("vocabulary", frequencies, terms)
        noise = self.noise.sample(stream, addresses)[:, 0]
        return np.asarray(frequencies, dtype=np.int64) + noise >= self.threshold
