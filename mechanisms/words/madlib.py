"""Madlib: multivariate noise on a word's vector, for metric differential privacy.

Feyisetan, Balle, Drake and Diethe: Privacy- and utility-preserving textual analysis via calibrated
multivariate perturbations (WSDM 2020); algorithm 1 of their talk at PrivateNLP 2020.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from quietcorpus.compiled import compiled, inlined

from ..accounting.guarantees import round_down
from ..keystream import BLOCK_BYTES, Addresses, Keystream
from . import document_loss
from .mechanism import EUCLIDEAN, NoisyWord, Points, Randomness

_NOISE_LANE = 0


@dataclass(frozen=True)
class Madlib(NoisyWord):
    """Noise of density proportional to exp(-epsilon ||z||) on a word's vector.

    Guarantee:
        For every two words w, w' and every set S of vectors,
        Pr[M(w) in S] <= exp(epsilon * d(w, w')) Pr[M(w') in S], with d the Euclidean distance of
        their vectors. The nearest word of the *whole* vocabulary to the noisy vector is
        post-processing and has the same guarantee, and so has any word that follows from the noisy
        vector and public data alone; the nearest among a set that depends on w would have none.
        It is proved for real numbers. The code runs float64 noise from 64 random bits a uniform
        (no normal beyond 9.5 standard deviations), added and rounded to float32. Only the nearest
        word is released, never the noisy vector, so that the gaps of floats are not seen as they
        are; but how little they can cost is measured by tests, not proved.
    """

    name = "madlib"
    title = "Madlib"
    does = "adds noise to a word's vector"
    metric = EUCLIDEAN
    part = "vectors"
    proofs: ClassVar[tuple[str, ...]] = ("words/madlib",)
    limits = (
        "what floating-point noise gives away: the proof is for real numbers. The noise that runs "
        "is bounded, so that the guarantee fails with a probability of order 10^-20 a word, and "
        "rounded; only nearest words are seen, and what rounding does to them is tested, not "
        "bounded",
    )

    def perturb(self, points: Points, noise: Randomness) -> Points:
        """See `NoisyWord`."""
        return perturb(points, *noise)

    @classmethod
    def loss_law(cls, dimensions: int, reach: Fraction) -> document_loss.Noise:
        """See `WordMechanism`."""
        return document_loss.Noise(dimensions)


def perturb(
    vectors: npt.NDArray[np.float32],
    epsilons: Sequence[Fraction],
    which: npt.NDArray[np.int64],
    stream: Keystream,
    addresses: Addresses,
) -> npt.NDArray[np.float32]:
    """Add noise to each word's vector; return the noisy vectors, float32 (n, d).

    Args:
        vectors: float32 (n, d), the words' own.
        epsilons: those in use, per unit of distance.
        which: int64 (n,), the position in `epsilons` of each word's epsilon.
        stream: the stage's keystream.
        addresses: one stream address a word, shape (n, 2).
    """
    noise = unit_noise(vectors.shape[1], stream, addresses)
    noise /= np.array([round_down(epsilon) for epsilon in epsilons])[which, None]
    noise += vectors
    return noise.astype(np.float32)


def unit_noise(dimensions: int, stream: Keystream, addresses: Addresses) -> npt.NDArray[np.float64]:
    """Draw noise of density proportional to exp(-||z||), float64 (n, d).

    The law is a scale mixture of normals, N(0, I) sqrt(2 Gamma((d + 1) / 2, 1)). Normals are drawn
    in pairs by Box and Muller. Twice that Gamma is the sum of the squares of d + 1 further normals;
    the squares of a pair add up to -2 log of a uniform.
    """
    words = 2 * -(-dimensions // 2) + (dimensions + 1) // 2 + 2 * ((dimensions + 1) % 2)
    blocks = -(-words * 8 // BLOCK_BYTES)
    raw = stream.blocks(addresses, blocks, lane=_NOISE_LANE).view("<u8")
    noise: npt.NDArray[np.float64] = _mix(raw.reshape(len(addresses), 2 * blocks), dimensions)
    return noise


@inlined
def _uniform(word):  # type: ignore[no-untyped-def]
    """Return a uniform in (0, 1], precise where it is small: near 1 it steps by 2^-53."""
    return (np.float64(word) + 0.5) * 2.0**-64


@compiled
def _mix(words, dimensions):  # type: ignore[no-untyped-def]
    noise = np.empty((len(words), dimensions))
    turn = 2.0 * np.pi * 2.0**-64
    for row in range(len(words)):
        drawn = words[row]
        used = 0
        squares = 0.0
        product = 1.0  # of uniforms, so that one logarithm serves many
        for _ in range((dimensions + 1) // 2):
            product *= _uniform(drawn[used])
            used += 1
            # A uniform is at least 2^-65, so the product never underflows.
            if product < 2.0**-900:
                squares -= 2.0 * np.log(product)
                product = 1.0
        squares -= 2.0 * np.log(product)
        if dimensions % 2 == 0:  # d + 1 is odd: one normal has no partner
            cosine = np.cos(turn * np.float64(drawn[used + 1]))
            squares -= 2.0 * np.log(_uniform(drawn[used])) * cosine * cosine
            used += 2
        for k in range(0, dimensions, 2):
            radius = np.sqrt(-2.0 * np.log(_uniform(drawn[used])) * squares)
            angle = turn * np.float64(drawn[used + 1])
            used += 2
            noise[row, k] = radius * np.cos(angle)
            if k + 1 < dimensions:
                noise[row, k + 1] = radius * np.sin(angle)
    return noise
