"""A noisy mean of sentence embeddings along a few public directions, for sentence privacy.

It is not from a paper. As in the baseline `truncation` of Meehan, Mrini and Chaudhuri (ACL 2022),
sentences are clipped, summed and perturbed; but first they are projected on a few public
directions, and they are clipped to a ball. What noise costs grows with the number of directions,
and a few along which public documents differ carry most of the information of their means.

Projections, clipped sentences and sums are whole numbers, so that the noise is exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from quietcorpus.compiled import compiled

from ..accounting.guarantees import SentencePrivacy, ceiling
from ..encoding import Value
from ..keystream import Addresses, Keystream
from ..noise.euclidean_noise import EuclideanNoise, check_dimensions, coordinate_rate
from ..noise.geometric import MINIMUM_RATE

STEPS = 64
"""The radius of the ball in whole numbers. Rounding moves a sentence by sqrt(d / 12) of them."""
DIRECTION_UNIT = 1 << 11
"""Steps of the grid in the longest direction's length."""
_SENTENCE_UNIT = 1 << 10  # steps of the grid in the ball's radius, before a sentence is projected
_LARGEST = 1 << 20  # of a coordinate on that grid: sums of products stay exact in float64
LARGEST_LIFT = 1 << 20
"""The largest coordinate of a lift: a row is then exact for noisy sums below 2^28."""
_ROOT_UNIT = 1_000
_LONGEST = 1.1 * DIRECTION_UNIT  # so that a sentence's squares stay far below 2^63
_LEAST_RADIUS = 1e-30  # so that a sentence's place in the ball is finite
_SHIFT = 15  # DIRECTION_UNIT * _SENTENCE_UNIT / STEPS, as a power of two


@dataclass(frozen=True)
class ProjectedMean:
    """Noise of probability proportional to exp(-rate ||z||_2) on a document's projected sentences.

    Guarantee:
        For every two documents of equally many sentences that differ in one of them, and for every
        set S of outputs, Pr[M(x) in S] <= exp(epsilon) Pr[M(x') in S].
        Each sentence adds a vector of whole numbers of a Euclidean length of at most STEPS, which
        depends on that sentence alone; so replacing one moves the sum by at most 2 * STEPS.
        What is released depends on the noisy sum and on the number of sentences alone; that number
        is not protected.
        The bound is exact for ideal random bits and computational for the keyed stream.

    `directions` is the number of directions. Raises ValueError for more of them than the noise
    can be drawn for, and where epsilon is so small that its noise cannot be drawn.
    """

    epsilon: Fraction
    directions: int

    def __post_init__(self) -> None:
        check_dimensions(self.directions)
        if coordinate_rate(self.rate, self.directions) < MINIMUM_RATE:
            square = self.directions * _ROOT_UNIT**2
            least = ceiling(MINIMUM_RATE * 2 * STEPS * Fraction(math.isqrt(square) + 1, _ROOT_UNIT))
            raise ValueError(f"with {self.directions} directions epsilon must be at least {least}")

    @property
    def stage_parameters(self) -> dict[str, Value]:
        """Return the stage parameters that the noise depends on."""
        return {
            "mechanism": "projected-mean",
            "epsilon": self.epsilon,
            "directions": self.directions,
        }

    @property
    def rate(self) -> Fraction:
        """Return the noise's rate: the log-ratio that a step of Euclidean length is worth."""
        return self.epsilon / (2 * STEPS)

    @property
    def guarantee(self) -> SentencePrivacy:
        """Return the guarantee for one document."""
        return SentencePrivacy(self.epsilon)


@dataclass(frozen=True, eq=False)
class Ball:
    """The public ball that sentences are clipped to, along public directions.

    Attributes:
        centre: float64 (D,), an embedding.
        directions: float64 (d, D), whole numbers, in steps of 1 / DIRECTION_UNIT.
        radius: of the ball, in units of places along the directions.
        lifts: float64 (d, D), whole numbers in the same steps: what a unit along each direction
            adds to an embedding. None for the directions themselves, where they are orthonormal.

    Raises ValueError for shapes that differ, for numbers that are not finite, for directions that
    are not whole numbers or longer than their unit, and for lifts that are too large.
    """

    centre: npt.NDArray[np.float64]
    directions: npt.NDArray[np.float64]
    radius: float
    lifts: npt.NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        if self.directions.ndim != 2 or self.centre.shape != self.directions.shape[1:]:
            raise ValueError("the centre and the directions differ in their number of dimensions")
        if not (np.isfinite(self.centre).all() and _LEAST_RADIUS <= self.radius < np.inf):
            raise ValueError("the ball has a centre that is not finite, or no positive radius")
        whole = np.array_equal(self.directions, np.rint(self.directions))
        if not whole or np.abs(self.directions).max(initial=0) > DIRECTION_UNIT:
            raise ValueError("a direction is not of whole numbers up to its unit")
        if self.directions.shape[1] * _LARGEST * DIRECTION_UNIT >= 2**53:
            raise ValueError("embeddings have too many dimensions for exact projections")
        if np.sqrt((self.directions**2).sum(axis=1).max(initial=0)) > _LONGEST:
            raise ValueError("a direction is longer than its unit")
        if self.lift.shape != self.directions.shape:
            raise ValueError("the directions and their lifts differ in shape")
        exact = np.array_equal(self.lift, np.rint(self.lift))
        if not exact or np.abs(self.lift).max(initial=0) > LARGEST_LIFT:
            raise ValueError("a lift is not of whole numbers up to its largest")

    @property
    def lift(self) -> npt.NDArray[np.float64]:
        """Return what a unit along each direction adds to an embedding, as `lifts`."""
        return self.directions if self.lifts is None else self.lifts

    def sums(
        self, sentences: npt.NDArray[np.float32], offsets: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        """Sum each document's projected and clipped sentences, int64 (n, d).

        A sentence adds its place along the directions, in steps of radius / STEPS, rounded; beyond
        the ball, it is drawn in towards the centre. Its contribution depends on it alone.

        Args:
            sentences: float32 (total, D).
            offsets: int64 (n + 1,); document i has sentences offsets[i] .. offsets[i + 1].

        Raises:
            ValueError: a value is not finite, or the embeddings have other dimensions.
        """
        if sentences.ndim != 2 or sentences.shape[1] != len(self.centre):
            raise ValueError("the ball and the embeddings differ in their number of dimensions")
        if not np.isfinite(sentences).all():
            raise ValueError("an embedding is not finite")
        whole = np.rint((sentences - self.centre) * (_SENTENCE_UNIT / self.radius))
        np.clip(whole, -_LARGEST, _LARGEST, out=whole)
        # Every product and every partial sum is a whole number below 2^53, whatever the order.
        projected = (whole @ self.directions.T).astype(np.int64)
        found: npt.NDArray[np.int64] = _sums(projected, offsets)
        return found

    def places(self, embeddings: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
        """Return where embeddings (n, D) lie along the directions, float64 (n, d), as they are.

        They are in steps of radius / STEPS, not rounded, and not drawn in.
        """
        unit = STEPS / (DIRECTION_UNIT * self.radius)
        found: npt.NDArray[np.float64] = unit * ((embeddings - self.centre) @ self.directions.T)
        return found

    def means(self, embeddings: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
        """Return the noisy means that released embeddings (n, D) tell, float64 (n, d).

        They are in steps of radius / STEPS along the directions, as `sums` are.
        """
        steps = STEPS * DIRECTION_UNIT / self.radius
        found: npt.NDArray[np.float64] = steps * (
            (embeddings - self.centre) @ np.linalg.pinv(self.lift)
        )
        return found


class NoisyProjections:
    """The release of documents from their sums: the noise, then embeddings again."""

    def __init__(self, mechanism: ProjectedMean, ball: Ball) -> None:
        """Tabulate the noise; raise ValueError where the two differ in directions."""
        if mechanism.directions != len(ball.directions):
            raise ValueError(
                f"the ball has {len(ball.directions)} directions, and the noise "
                f"{mechanism.directions}"
            )
        self.noise = EuclideanNoise(mechanism.rate, mechanism.directions)
        self._ball = ball

    def release(
        self,
        sums: npt.NDArray[np.int64],
        lengths: npt.NDArray[np.int64],
        stream: Keystream,
        addresses: Addresses,
    ) -> npt.NDArray[np.float32]:
        """Return the noisy mean of each document's sentences, float32 (n, D).

        Noise may move it out of the ball. A document of no sentences, which has nothing to protect,
        gets the ball's centre.

        Args:
            sums: int64 (n, d), of `Ball.sums`.
            lengths: int64 (n,), how many sentences each document has.
            stream: the stage's keystream.
            addresses: one stream address a document, shape (n, 2).
        """
        return self.rows(sums + self.noise.sample(stream, addresses), lengths)

    def rows(
        self, noisy: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.float32]:
        """Return what is released of noisy sums, int64 (n, d), as `release` does; nothing else."""
        places = noisy.astype(np.float64)
        places[lengths == 0] = 0
        # Exact again, so that a row does not depend on the rows beside it.
        lifted = places @ self._ball.lift
        steps = STEPS * DIRECTION_UNIT * np.maximum(lengths, 1)
        lifted *= (self._ball.radius / steps)[:, None]
        lifted += self._ball.centre
        return lifted.astype(np.float32)


@compiled
def _sums(projected, offsets):  # type: ignore[no-untyped-def]
    """Round projections to steps of the ball, draw in those beyond it, and sum them by document."""
    documents, size = len(offsets) - 1, projected.shape[1]
    found = np.zeros((documents, size), dtype=np.int64)
    steps = np.empty(size, dtype=np.int64)
    half = np.int64(1) << (_SHIFT - 1)
    for document in range(documents):
        for sentence in range(offsets[document], offsets[document + 1]):
            squares = np.int64(0)
            for j in range(size):
                steps[j] = (projected[sentence, j] + half) >> _SHIFT
                squares += steps[j] * steps[j]
            if squares > STEPS * STEPS:
                # A whole number that is at least the length: rounded towards zero, the vector
                # then ends within the ball, whatever the root's rounding.
                length = np.int64(np.sqrt(np.float64(squares)))
                while length * length < squares:
                    length += 1
                for j in range(size):
                    drawn = abs(steps[j]) * STEPS // length
                    steps[j] = drawn if steps[j] > 0 else -drawn
            for j in range(size):
                found[document, j] += steps[j]
    return found
