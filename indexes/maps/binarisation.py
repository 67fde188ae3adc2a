"""Binary codes of word vectors, by the near-lossless binarising autoencoder.

Tissier, Gravier and Habrard, "Near-lossless Binarization of Word Embeddings", AAAI 2019: a code is
b = h(W x), h the Heaviside step, and x^ = tanh(W^T b + c) is read back from it by the same W.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

Vectors = npt.NDArray[np.float32]
"""A vector a row, float32 (n, d)."""
Codes = npt.NDArray[np.uint64]
"""A code a row, uint64 (n, bits // 64): bit b is bit (b % 64) of word b // 64."""

BATCH, EPOCHS, RATE, MOMENTUM = 75, 5, 0.001, 0.95
FEWEST_STEPS = 2_000  # a small vocabulary takes more epochs
SPREAD = 0.25  # of a scaled dimension: tanh reaches four standard deviations
NEIGHBOURS, SAMPLE = 10, 1_000
_BLOCK = 4_096  # vectors in memory as floats at a time
_CELLS = 2**24  # of the sample's similarities to the vocabulary, in memory at a time


@dataclass(frozen=True, eq=False)
class Autoencoder:
    """The trained parameters: `weights` W, float32 (bits, d), and `bias` c, float32 (d,).

    It works on x = (vector - centre) / scale, `centre` float32 (d,), and reads a code back as
    x^ = tanh(gain W^T b + c).
    """

    weights: Vectors
    bias: Vectors
    centre: Vectors
    scale: float

    def encode(self, values: Vectors) -> Codes:
        """Encode vectors, float32 (n, d), as codes: a bit is set where W x > 0."""
        codes = np.empty((len(values), len(self.weights) // 64), dtype=np.uint64)
        for block in _blocks(len(values)):
            bits = (values[block] - self.centre) @ self.weights.T > 0
            codes[block] = np.packbits(bits, axis=1, bitorder="little").view("<u8")
        return codes

    def decode(self, codes: Codes) -> Vectors:
        """Decode codes into vectors, float32 (n, d)."""
        values = np.empty((len(codes), len(self.bias)), dtype=np.float32)
        gain = _gain(*self.weights.shape)
        for block in _blocks(len(codes)):
            scaled = np.tanh(gain * (_bits(codes[block]) @ self.weights) + self.bias)
            values[block] = self.centre + np.float32(self.scale) * scaled
        return values


def train(values: Vectors, bits: int, seed: int) -> Autoencoder:
    """Fit an autoencoder to vectors, float32 (V, d); the same arguments give the same codes.

    As in the paper, h has no gradient: W learns through the decoder and the regulariser, by SGD on
    |x - x^|^2 / (2 SPREAD^2) + |W^T W - I|^2 / 2. The training departs from the paper and its
    authors' code where neighbours on real vectors are preserved better. `neighbour_overlap` (see
    Quality) is

                              GloVe 840B, 33,860 x 300   GloVe-like, 341,479 x 100
        bits                    128    256    512           128    256    512
        random hyperplanes      .33    .48    .61           .14    .25    .40
        the paper's settings    .41    .56    .65           .21    .33    .38
        here                    .42    .58    .68           .22    .34    .44

    and on the former at 256 bits one word in 700 (numerals) shares its code, on the latter none.

    - Vectors are centred and scaled, not clipped: .59 against .57 without it on GloVe at 256 bits,
      every bit is set in 48 to 52 % of the words instead of 20 to 80 %, and the mean Hamming
      distance is 128 instead of 119.
    - The decoder has a gain. W^T W = I fixes the length of W^T (b - 1/2) near sqrt(bits / 2 pi),
      whatever the vectors' length is; where the two lengths differ, the error works against the
      code (without a gain .29 instead of .33 at d = 100).
    - The error's gradient is averaged over the batch and taken with b - 1/2 instead of b, for which
      the bias compensates. Summed and with b, as in the authors' code, the steps are too long to
      settle: decoded vectors are further away (2.1 times the variance) than the mean vector is
      (here .41).
    - W starts with orthonormal columns (rows, if bits < d), batches are shuffled, the rate falls to
      zero, and there is momentum (without these .55 instead of .59).

    Raises ValueError unless `bits` is a positive multiple of 64 and the vectors are finite, of at
    least one dimension, and not all equal.
    """
    if bits < 64 or bits % 64:
        raise ValueError(f"bits must be a positive multiple of 64, not {bits}")
    centre, deviation = _moments(values)
    generator = np.random.default_rng(seed)
    dimensions, scale = values.shape[1], deviation / SPREAD
    weights = _frame(bits, dimensions, generator)
    bias = np.zeros(dimensions, dtype=np.float32)
    gain, rate = _gain(bits, dimensions), min(RATE, 1 / dimensions)
    velocity, drift = np.zeros_like(weights), np.zeros_like(bias)
    steps = _steps(len(values))
    # One thread, or the order of sums, and so the codes, would depend on the number of cores.
    with threadpool_limits(1, "blas"):
        for step, rows in enumerate(_batches(len(values), steps, generator)):
            batch = (values[rows] - centre) / np.float32(scale)
            towards, shift = _gradient(weights, bias, batch, gain)
            pace = np.float32(rate * (1 - step / steps))
            velocity = np.float32(MOMENTUM) * velocity - pace * towards
            drift = np.float32(MOMENTUM) * drift - pace * shift
            weights += velocity
            bias += drift
    bias -= gain / 2 * weights.sum(axis=0)
    return Autoencoder(weights, bias, centre, scale)


@dataclass(frozen=True)
class Quality:
    """The information about the vectors that the codes keep.

    `reconstruction_error`: mean squared error of the decoded vectors over the mean squared distance
    to the mean vector (0 is lossless, 1 is as bad as that mean).
    `neighbour_overlap`: of a word's 10 nearest by the vectors' cosine, the share that are among its
    10 nearest by Hamming distance (ties to the lowest id); the mean over up to 1,000 words drawn.
    `imbalance`: the largest distance from 1/2 of the share of words in which a bit is set.
    `sharing`: the number of words whose code is another word's as well.
    """

    reconstruction_error: float
    neighbour_overlap: float
    imbalance: float
    sharing: int


def quality(values: Vectors, codes: Codes, autoencoder: Autoencoder, seed: int) -> Quality:
    """Measure the codes of vectors, float32 (V, d), V at least 2; `seed` draws the sample."""
    if len(values) != len(codes) or len(codes) < 2:
        raise ValueError(f"{len(values)} vectors and {len(codes)} codes: need as many, at least 2")
    errors = 0.0
    for block in _blocks(len(codes)):
        differences = values[block] - autoencoder.decode(codes[block])
        errors += float(np.square(differences, dtype=np.float64).sum())
    _, deviation = _moments(values)
    imbalance, sharing = spread(codes)
    return Quality(
        reconstruction_error=errors / values.size / deviation**2,
        neighbour_overlap=_overlap(values, codes, np.random.default_rng(seed)),
        imbalance=imbalance,
        sharing=sharing,
    )


def spread(codes: Codes) -> tuple[float, int]:
    """Return the `imbalance` and the `sharing` of codes, as `Quality` has them."""
    ones = np.zeros(64 * codes.shape[1])
    for block in _blocks(len(codes)):
        ones += _bits(codes[block]).sum(axis=0, dtype=np.float64)
    _, copies = np.unique(codes, axis=0, return_counts=True)
    return float(np.abs(ones / len(codes) - 0.5).max()), int(copies[copies > 1].sum())


def _gradient(
    weights: Vectors, bias: Vectors, batch: Vectors, gain: np.float32
) -> tuple[Vectors, Vectors]:
    """Compute the loss's gradient in W and in the bias, taken with b - 1/2 instead of b."""
    bits = (batch @ weights.T > 0).astype(np.float32) - np.float32(0.5)
    decoded = np.tanh(gain * (bits @ weights) + bias)
    errors = (decoded - batch) * (1 - decoded * decoded) / np.float32(SPREAD**2 * len(batch))
    rows, columns = weights.shape
    # W W^T W, by the smaller of the two products.
    cube = weights @ (weights.T @ weights) if columns < rows else weights @ weights.T @ weights
    return gain * (bits.T @ errors) + 2 * (cube - weights), errors.sum(axis=0)


def _gain(bits: int, dimensions: int) -> np.float32:
    """Return the gain that makes W^T (b - 1/2) as long as a scaled vector when W^T W = I.

    A scaled vector has length sqrt(d) SPREAD.
    """
    return np.float32(SPREAD * math.sqrt(2 * math.pi * dimensions / bits))


def _frame(bits: int, dimensions: int, generator: np.random.Generator) -> Vectors:
    left, _, right = np.linalg.svd(
        generator.standard_normal((bits, dimensions)), full_matrices=False
    )
    frame: Vectors = (left @ right).astype(np.float32)
    return frame


def _moments(values: Vectors) -> tuple[Vectors, float]:
    """Return the mean vector, and the root mean square of a value's distance from it."""
    if values.ndim != 2 or not values.size:
        raise ValueError(f"vectors must have words and dimensions, not shape {values.shape}")
    if not all(np.isfinite(values[block]).all() for block in _blocks(len(values))):
        raise ValueError("vectors must be finite numbers")
    centre = values.mean(axis=0, dtype=np.float64).astype(np.float32)
    squares = 0.0
    for block in _blocks(len(values)):
        squares += float(np.square(values[block] - centre, dtype=np.float64).sum())
    if squares == 0:
        raise ValueError("vectors must not all be equal: there is nothing to tell them apart by")
    return centre, math.sqrt(squares / values.size)


def _steps(count: int) -> int:
    return max(EPOCHS * -(-count // BATCH), FEWEST_STEPS)


def _batches(
    count: int, steps: int, generator: np.random.Generator
) -> Iterator[npt.NDArray[np.int64]]:
    """Yield `steps` batches of row numbers, with a new order for each pass over the rows."""
    while True:
        order = generator.permutation(count)
        for start in range(0, count, BATCH):
            if not steps:
                return
            yield order[start : start + BATCH]
            steps -= 1


def _blocks(count: int) -> Iterator[slice]:
    return (slice(start, start + _BLOCK) for start in range(0, count, _BLOCK))


def _bits(codes: Codes) -> Vectors:
    octets = np.ascontiguousarray(codes, dtype="<u8").view(np.uint8)
    return np.unpackbits(octets, axis=1, bitorder="little").astype(np.float32)


def _overlap(values: Vectors, codes: Codes, generator: np.random.Generator) -> float:
    count = min(NEIGHBOURS, len(values) - 1)
    sample = generator.choice(len(values), min(SAMPLE, len(values)), replace=False)
    lengths = np.sqrt(np.einsum("ij,ij->i", values, values))
    lengths[lengths == 0] = 1  # at a right angle to everything
    kept, rows = 0, max(1, _CELLS // len(values))
    for start in range(0, len(sample), rows):
        words = sample[start : start + rows]
        for word, products in zip(words, values[words] @ values.T, strict=True):
            real = -products / lengths
            coded = np.bitwise_count(codes ^ codes[word]).sum(axis=1, dtype=np.float32)
            real[word] = coded[word] = np.inf
            kept += len(np.intersect1d(_nearest(real, count), _nearest(coded, count)))
    return kept / (count * len(sample))


def _nearest(distances: Vectors, count: int) -> npt.NDArray[np.int64]:
    """Return the ids of the `count` smallest distances, in any order; of ties, the lowest ids."""
    last = np.partition(distances, count - 1)[count - 1]
    closer, ties = np.flatnonzero(distances < last), np.flatnonzero(distances == last)
    return np.concatenate([closer, ties[: count - len(closer)]])
