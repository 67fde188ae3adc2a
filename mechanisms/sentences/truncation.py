"""Truncation: the noisy mean of a document's clipped sentence embeddings, for sentence privacy.

Meehan, Mrini and Chaudhuri: Sentence-level privacy for document embeddings (ACL 2022), the baseline
of this name in section 5. Every sentence's embedding is clipped to a public box, which holds the
middle 75 % of public *sentences'* coordinates; the paper's holds those of documents' embeddings,
which vary less, so that its box is narrower. The sentences' mean gets Laplace noise of scale
d * w_j / (k * epsilon) in coordinate j, for d dimensions, a box of width w_j and k sentences.

Here clipped coordinates are rounded to whole numbers first, so that their sums are exact and the
noise is geometric: the Laplace law's counterpart on whole numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from quietcorpus.compiled import compiled

from ..accounting.guarantees import SentencePrivacy, ceiling
from ..encoding import Value
from ..keystream import Addresses, Keystream
from ..noise.geometric import MINIMUM_RATE, DenseNoise

STEPS = 4
"""The largest whole number that a coordinate is rounded to. With 1,024 dimensions the noise can
then be drawn from an epsilon of 0.82 on. Rounding moves a mean by at most an eighth of the box's
width, which the noise exceeds up to an epsilon of about 11 d / k."""
_VALUES_AT_ONCE = 1 << 21


@dataclass(frozen=True)
class Truncation:
    """Two-sided geometric noise on the sums of a document's clipped and rounded embeddings.

    Guarantee:
        For every two documents of equally many sentences that differ in one of them, and for every
        set S of outputs, Pr[M(x) in S] <= exp(epsilon) Pr[M(x') in S].
        Replacing a sentence changes every sum by at most STEPS, and so the sums of d dimensions by
        at most d * STEPS in the L1 norm; geometric noise at `rate` bounds the log-ratio of any two
        output probabilities by rate * ||x - x'||_1.
        What is released depends on the noisy sums and on the number of sentences alone; that number
        is not protected.
        The bound is exact for ideal random bits and computational for the keyed stream.

    Raises ValueError where epsilon is so small that its noise cannot be drawn.
    """

    epsilon: Fraction
    dimensions: int

    def __post_init__(self) -> None:
        if self.rate < MINIMUM_RATE:
            least = ceiling(MINIMUM_RATE * self.dimensions * STEPS)
            raise ValueError(
                f"with embeddings of {self.dimensions} dimensions epsilon must be at least {least}"
            )

    @property
    def stage_parameters(self) -> dict[str, Value]:
        """Return the stage parameters that the noise depends on."""
        return {"mechanism": "truncation", "epsilon": self.epsilon, "dimensions": self.dimensions}

    @property
    def rate(self) -> Fraction:
        """Return the noise's rate: the log-ratio that one step of one coordinate is worth."""
        return self.epsilon / (self.dimensions * STEPS)

    @property
    def guarantee(self) -> SentencePrivacy:
        """Return the guarantee for one document."""
        return SentencePrivacy(self.epsilon)


@dataclass(frozen=True, eq=False)
class Box:
    """The public box low <= x <= low + width, float64 (d,) both; values are clipped to it.

    Raises ValueError for shapes that differ, and for numbers that are negative widths or not
    finite.
    """

    low: npt.NDArray[np.float64]
    width: npt.NDArray[np.float64]

    def __post_init__(self) -> None:
        if self.low.ndim != 1 or self.low.shape != self.width.shape:
            raise ValueError("a box has a lower end and a width in every dimension")
        if not (np.isfinite(self.low).all() and np.isfinite(self.width).all()):
            raise ValueError("a box is not finite")
        if (self.width < 0).any():
            raise ValueError("a box has a negative width")

    def sums(
        self, sentences: npt.NDArray[np.float32], offsets: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        """Sum each document's clipped and rounded embeddings, int64 (n, d).

        A sentence adds 0 at the box's lower end and STEPS at its upper one, and in between the
        nearest whole number, or the upper of two. Its contribution depends on that sentence alone.

        Args:
            sentences: float32 (total, d).
            offsets: int64 (n + 1,); document i has sentences offsets[i] .. offsets[i + 1].

        Raises:
            ValueError: a value is not finite, or the box has another number of dimensions.
        """
        if sentences.ndim != 2 or sentences.shape[1] != len(self.low):
            raise ValueError("the box and the embeddings differ in their number of dimensions")
        if not np.isfinite(sentences).all():
            raise ValueError("an embedding is not finite")
        halves = (np.arange(STEPS)[:, None] + 0.5) / STEPS
        found: npt.NDArray[np.int64]
        found = _sums(np.ascontiguousarray(sentences), offsets, self.low + self.width * halves)
        return found

    def means(self, embeddings: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
        """Return the noisy means that released embeddings (n, d) tell, float64 (n, d).

        They are in steps of width / STEPS from the lower end, as `sums` are. A dimension of no
        width tells none, and gets zeros.
        """
        steps = STEPS * (embeddings.astype(np.float64) - self.low)
        return np.divide(steps, self.width, out=np.zeros_like(steps), where=self.width > 0)


class NoisyMeans:
    """The release of documents from their sums: `truncation`'s noise, then `box`'s units again.

    Attributes:
        noise: the sampler of the noise on a document's sums.
    """

    def __init__(self, truncation: Truncation, box: Box) -> None:
        """Tabulate the noise; raise ValueError where the two differ in dimensions."""
        if truncation.dimensions != len(box.low):
            raise ValueError(
                f"the box has {len(box.low)} dimensions, and the noise {truncation.dimensions}"
            )
        self.noise = DenseNoise(truncation.rate, truncation.dimensions)
        self._box = box

    def release(
        self,
        sums: npt.NDArray[np.int64],
        lengths: npt.NDArray[np.int64],
        stream: Keystream,
        addresses: Addresses,
    ) -> npt.NDArray[np.float32]:
        """Return the noisy mean of each document's sentences, float32 (n, d).

        Noise may move it out of the box. A document of no sentences, which has nothing to protect,
        gets the middle of the box.

        Args:
            sums: int64 (n, d), of `Box.sums`.
            lengths: int64 (n,), how many sentences each document has.
            stream: the stage's keystream.
            addresses: one stream address a document, shape (n, 2).
        """
        released = np.empty(sums.shape, dtype=np.float32)
        step = max(1, _VALUES_AT_ONCE // len(self._box.low))
        for start in range(0, len(sums), step):
            rows = slice(start, start + step)
            noisy = sums[rows] + self.noise.sample(stream, addresses[rows])
            released[rows] = self.rows(noisy, lengths[rows])
        return released

    def rows(
        self, noisy: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.float32]:
        """Return what is released of noisy sums, int64 (n, d), as `release` does; nothing else."""
        shares = noisy / (np.maximum(lengths, 1) * STEPS)[:, None]
        shares[lengths == 0] = 0.5
        found: npt.NDArray[np.float32] = (self._box.low + self._box.width * shares).astype(
            np.float32
        )
        return found


@compiled
def _sums(sentences, offsets, halves):  # type: ignore[no-untyped-def]
    """Count how many of the ascending `halves` (steps, d) each coordinate reaches, and sum them."""
    steps, size = halves.shape
    found = np.zeros((len(offsets) - 1, size), dtype=np.int64)
    for document in range(len(offsets) - 1):
        for sentence in range(offsets[document], offsets[document + 1]):
            for step in range(steps):
                for column in range(size):
                    found[document, column] += sentences[sentence, column] >= halves[step, column]
    return found
