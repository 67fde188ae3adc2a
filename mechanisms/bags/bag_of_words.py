"""Bags of words under limited-precision local privacy, with compression (LPLP).

Schofield, Yauney and Mimno: local privacy for distributional semantics with compression.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from ..accounting.guarantees import LimitedPrecision
from ..encoding import Value
from ..keystream import Addresses, Keystream
from ..noise.geometric import DenseNoise, SparseNoise
from .bags import Bags, add_dense, add_sparse

_DENSE_VALUES_AT_ONCE = 1 << 21
# Measured: from here on, drawing the gaps between non-zero values beats drawing every value.
_SPARSE_BINS = 1 << 13
_SPARSE_RATE = Fraction(3, 2)


class Accounting(StrEnum):
    """The ways in which epsilon is spread over the bins."""

    TIGHT = "tight"
    """Noise at rate epsilon / N in every bin."""

    PER_ENTRY = "per-entry"
    """The paper's rule: each of V entries owns a budget, and the K bins share all V budgets."""


@dataclass(frozen=True)
class BagOfWords:
    """Two-sided geometric noise on each document's counts over K public bins.

    Guarantee:
        The released counts of a document are (N, rate * N)-limited-precision locally private.
        A public map takes a change of at most N in the L1 norm of the terms' counts to one of at
        most N in the bins', whatever the number of bins, and geometric noise at `rate` bounds the
        log-ratio of any two output probabilities by rate * ||x - x'||_1.
        With `tight` accounting rate * N is `epsilon`; with `per-entry` accounting it is
        V * epsilon / K, which the paper calls `epsilon`.
        The bound is exact for ideal random bits and computational for the keyed stream.
    """

    precision: int
    epsilon: Fraction
    vocabulary_size: int
    bins: int
    accounting: Accounting

    @property
    def stage_parameters(self) -> dict[str, Value]:
        """Return the stage parameters that the noise depends on."""
        return {
            "precision": self.precision,
            "epsilon": self.epsilon,
            "vocabulary_size": self.vocabulary_size,
            "bins": self.bins,
            "accounting": self.accounting,
        }

    @property
    def rate(self) -> Fraction:
        """Return the noise's rate: the log-ratio that one token is worth."""
        return self.guarantee.epsilon / self.precision

    @property
    def guarantee(self) -> LimitedPrecision:
        """Return the guarantee proved for one document's release, under either accounting."""
        if self.accounting is Accounting.TIGHT:
            return LimitedPrecision(self.precision, self.epsilon)
        return LimitedPrecision(self.precision, self.epsilon * self.vocabulary_size / self.bins)

    @property
    def papers_epsilon(self) -> Fraction:
        """Return the epsilon that the paper's accounting would state for this noise."""
        return self.guarantee.epsilon * self.bins / self.vocabulary_size

    @property
    def expected_noise_terms(self) -> float:
        """Estimate how many entries noise alone adds to a released document, for sizing only."""
        alpha = math.exp(-float(self.rate))
        if self.bins == self.vocabulary_size:
            return 1 + self.bins * alpha / (1 + alpha)
        return 1 + min(self.vocabulary_size, self.bins * alpha / (1 - alpha**2))

    def noise(self) -> DenseNoise | SparseNoise:
        """Return the sampler of one document's noise; dense or sparse differ in speed alone."""
        sparse = self.bins >= _SPARSE_BINS and self.rate >= _SPARSE_RATE
        return (SparseNoise if sparse else DenseNoise)(self.rate, self.bins)


def add_noise(
    noise: DenseNoise | SparseNoise,
    size: int,
    stream: Keystream,
    addresses: Addresses,
    offsets: npt.NDArray[np.int64],
    bins: npt.NDArray[np.int32],
) -> Bags:
    """Release the bins of a batch of documents (LPLP, section 4).

    Args:
        noise: the sampler of `BagOfWords.noise`.
        size: the number of bins K.
        stream: the stage's keystream.
        addresses: one stream address a document, shape (n, 2).
        offsets: int64 (n + 1,); document i has the tokens offsets[i] .. offsets[i + 1].
        bins: int32; the bin of every token.

    Returns:
        The noisy counts that are not zero, negative ones included.
    """
    if len(addresses) == 0:
        return Bags(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.int32))
    if isinstance(noise, SparseNoise):
        return Bags(*add_sparse(offsets, bins, *noise.sample(stream, addresses)))
    step = max(1, _DENSE_VALUES_AT_ONCE // size)
    parts = [
        Bags(
            *add_dense(
                offsets[i : i + step + 1], bins, noise.sample(stream, addresses[i : i + step])
            )
        )
        for i in range(0, len(addresses), step)
    ]
    return _concatenate(parts)


def _concatenate(parts: list[Bags]) -> Bags:
    if len(parts) == 1:
        return parts[0]
    lengths = np.concatenate([np.zeros(1, np.int64), *(np.diff(part.offsets) for part in parts)])
    return Bags(
        np.cumsum(lengths),
        np.concatenate([part.entries for part in parts]),
        np.concatenate([part.counts for part in parts]),
    )
