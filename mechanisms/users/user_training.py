"""Training with users as the unit: a step's noisy sums, and the model's update from them.

Vu, Tran and Jiang: dpUGC (CICLing 2019), with the bound that its listing lacks: McMahan et al.:
Learning differentially private recurrent language models (ICLR 2018), algorithm 1, with a fixed
denominator and one gradient a user.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..encoding import Value
from ..keystream import Keystream
from .clipped_sum import STEPS, ClippedSum
from .skip_gram import Rows, SkipGram, Vectors, negative_samples

_MEAN, _SQUARE, _EPSILON = 0.9, 0.99, 1e-8

_LENGTH = np.float32(3**-0.5)
"""The root mean square length of a vector that training starts from."""

Sums = Callable[[int, Vectors, Rows], npt.NDArray[np.int64]]
"""The sum of the clipped updates of a step's sampled users, from the step, model and negatives."""


@dataclass(frozen=True, eq=False)
class TrainingState:
    """The state after `step` steps: all of it is post-processing of their noisy sums.

    Attributes:
        model: the vectors.
        mean, square: float32 (2 V, d), Adam's running moments.
    """

    step: int
    model: Vectors
    mean: npt.NDArray[np.float32]
    square: npt.NDArray[np.float32]

    @classmethod
    def initial(
        cls, size: int, dimensions: int, start: npt.NDArray[np.float32] | None = None
    ) -> TrainingState:
        """Return the state before the first step: vectors that depend on no private data at all.

        Every number is uniform between -1 / sqrt(d) and 1 / sqrt(d), the same in every training.
        Words that have a public vector start from it, at the root mean square length of the others:
        the first products w . c, and so the first gradients, are then of the usual size. What is
        public of contexts is seldom published; they start from random numbers.

        Args:
            size: the number V of words.
            dimensions: the dimensions d of a vector.
            start: float32 (V, d), the words' public vectors, of length one; zero where there is
                none.
        """
        generator = np.random.default_rng(0)
        drawn = generator.uniform(-1, 1, (2 * size, dimensions)) / np.sqrt(dimensions)
        values = drawn.astype(np.float32)
        if start is not None:
            given = np.flatnonzero(start.any(axis=1))
            values[given] = _LENGTH * start[given]
        zeros = np.zeros_like(values)
        return cls(0, Vectors(values[:size], values[size:]), zeros, zeros)


@dataclass(frozen=True)
class Training:
    """Steps of a training, each a release of noisy sums.

    Attributes:
        settings: the settings of the model.
        mechanism: adds the noise.
        lot: the number of users that a step is expected to have. It is public, since the divisor
            must not tell how many users there are.
        rate: Adam's learning rate.

    Guarantee:
        A step's sums change by at most the clipping norm when a user is added or removed, and not
        at all in a step for which that user is not drawn.
        Noise of standard deviation sigma * C is added to every coordinate of every row, also of
        those that no user has touched: which rows are touched is private.
        All else (moments, learning rate, vectors) is made from noisy sums and public numbers.
        So `steps` steps have the (epsilon, delta) of as many Poisson-sampled Gaussian mechanisms
        (`quietcorpus.mechanisms.accounting.privacy_loss`).
    """

    settings: SkipGram
    mechanism: ClippedSum
    lot: float
    rate: float

    @property
    def stage_parameters(self) -> dict[str, Value]:
        """Return the stage parameters that the steps depend on."""
        return {
            "dimensions": self.settings.dimensions,
            "window": self.settings.window,
            "negatives": self.settings.negatives,
            "clip": self.settings.clip,
            "noise_multiplier": self.mechanism.noise_multiplier,
            "lot": self.lot,
            "rate": self.rate,
        }

    def run(
        self, state: TrainingState, until: int, sums: Sums, stream: Keystream
    ) -> Iterator[TrainingState]:
        """Yield the state after each step up to number `until`.

        `stream` must be of a stage whose parameters name the training and its data.
        """
        while state.step < until:
            size, dimensions = state.model.words.shape
            negatives = negative_samples(state.step, size, dimensions, stream)
            exact = sums(state.step, state.model, negatives)
            state = self.advanced(state, self.noisy(state.step, exact, stream))
            yield state

    def noisy(
        self, step: int, sums: npt.NDArray[np.int64], stream: Keystream
    ) -> npt.NDArray[np.int64]:
        """Add noise to a step's sums, int64 (2 V, d), as a function of the step and the sums."""
        digest = hashlib.sha256(sums.tobytes()).digest()
        address = stream.addresses("noise", [step], [digest])
        return self.mechanism.release(sums.reshape(1, -1), stream, address).reshape(sums.shape)

    def advanced(self, state: TrainingState, noisy: npt.NDArray[np.int64]) -> TrainingState:
        """Compute the next state by Adam (Kingma and Ba 2015) on the mean update per user.

        Raises FloatingPointError where it is not finite, which noisy sums alone decide.
        """
        step = state.step + 1
        update = (noisy / (STEPS * self.lot)).astype(np.float32)
        mean = np.float32(_MEAN) * state.mean + np.float32(1 - _MEAN) * update
        square = np.float32(_SQUARE) * state.square + np.float32(1 - _SQUARE) * update**2
        change = np.float32(self.rate / (1 - _MEAN**step)) * mean
        change /= np.sqrt(square / np.float32(1 - _SQUARE**step)) + np.float32(_EPSILON)
        size = len(state.model.words)
        model = Vectors(state.model.words + change[:size], state.model.contexts + change[size:])
        if not (np.isfinite(model.words).all() and np.isfinite(model.contexts).all()):
            raise FloatingPointError(f"step {step} leaves the finite numbers")
        return TrainingState(step, model, mean, square)
