"""Training on public documents: directions of difference, and the recoder.

Directions along which public documents differ, relative to how their sentences vary.

Fisher's linear discriminants (1936; Rao 1948 for many classes), with documents as the classes and
sentences as their members: along the first, documents' means vary most as a share of sentences'
variance. A noisy mean pays for the ball that holds its sentences, and gains where means differ, so
these are what it should be measured along. Principal directions of the means also have those along
which all sentences vary.

The training of a recoder, in NumPy: gradients by hand, as the recoder has four layers.

Meehan, Mrini and Chaudhuri: Sentence-level privacy for document embeddings (ACL 2022), section 4.3.
AdamW (Loshchilov and Hutter: Decoupled weight decay regularization, ICLR 2019), dropout, and a
learning rate that falls by a cosine, for 60 epochs. The paper uses Adam for up to 20 epochs, and
stops by validation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import log_softmax
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from .candidates import (
    LARGEST_DIRECTION,
    LARGEST_LIFT,
    LEAST_RADIUS,
    MOST_DIRECTIONS,
)
from .recoder import TYPICAL, WIDTHS, Recoder

_RADIUS = 0.5  # the share of public sentences that are not cut to the ball
_LEAST_SHARE = 1e-4  # of the largest variance of sentences, which other directions count as having
_SINGULAR = 1e-6  # of the largest spread of means along a direction: what counts as none


class Discriminants(NamedTuple):
    """Directions with what they are measured in; `documents.candidates` says how each is kept.

    Attributes:
        directions: float64 (e, d), whole numbers; the longest has LARGEST_DIRECTION, about.
        radii: float64 (e,): the median length of sentences along the first 1, 2, ... e of them.
        lifts: float64 (e, d), whole numbers: what a step along each adds to an embedding.
    """

    directions: npt.NDArray[np.float64]
    radii: npt.NDArray[np.float64]
    lifts: npt.NDArray[np.float64]


def discriminants(
    sentences: npt.NDArray[np.floating],
    centre: npt.NDArray[np.float64],
    documents: npt.NDArray[np.float64],
    sample: npt.NDArray[np.int64],
) -> Discriminants:
    """Find the directions of some documents, their radii, and their lifts.

    The sentences' covariance is shrunk as Ledoit and Wolf (2004) do, so that with few sentences
    the directions become the principal directions of the means. The lifts are the regression of
    documents' means on their places along the directions.

    Args:
        sentences: (n, d), embeddings of public sentences.
        centre: (d,), their mean.
        documents: (m, d), means of documents of two sentences or more.
        sample: numbers of the sentences by which the covariance is estimated.
    """
    from sklearn.covariance import ledoit_wolf

    covariance, _ = ledoit_wolf(sentences[sample] - centre, assume_centered=True)
    variances, axes = np.linalg.eigh(covariance)
    variances = np.maximum(variances, max(_LEAST_SHARE * variances[-1], LEAST_RADIUS**2))
    whitening = axes / np.sqrt(variances) @ axes.T
    spread = documents - documents.mean(axis=0)
    _, spreads, rows = np.linalg.svd(spread @ whitening, full_matrices=False)
    # Where no documents differ a direction would be long, and leave the others few steps.
    number = max(1, int((spreads[:MOST_DIRECTIONS] > _SINGULAR * spreads[0]).sum()))
    found = rows[:number] @ whitening
    longest = np.linalg.norm(found, axis=1).max()
    directions = np.rint(found / longest * LARGEST_DIRECTION)
    places = spread @ directions.T / LARGEST_DIRECTION
    lifts = np.rint(np.linalg.lstsq(places, spread, rcond=_SINGULAR)[0] * LARGEST_DIRECTION)
    squares = np.cumsum(((sentences - centre) @ directions.T / LARGEST_DIRECTION) ** 2, axis=1)
    return Discriminants(
        directions,
        np.maximum(LEAST_RADIUS, np.sqrt(np.quantile(squares, _RADIUS, axis=0))),
        np.clip(lifts, -LARGEST_LIFT, LARGEST_LIFT),
    )


_EPOCHS, _BATCH, _RATE, _DECAY, _DROPOUT = 60, 64, 1e-3, 1e-4, 0.3
_MEAN_DECAY, _SQUARE_DECAY, _LEAST = 0.9, 0.999, 1e-8  # of AdamW's moments
_MEASURED = 10_000  # sentences, for the spread of codes

_Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class TrainingCourse:
    """The course of a training: each epoch's mean cross-entropy and held-out accuracy."""

    losses: tuple[float, ...]
    accuracies: tuple[float, ...]


def train(
    embeddings: _Floats,
    offsets: npt.NDArray[np.int64],
    clusters: npt.NDArray[np.int64],
    held: npt.NDArray[np.bool_],
    seed: int,
) -> tuple[Recoder, TrainingCourse]:
    """Fit a recoder to public documents; the same arguments give the same one on one machine.

    Args:
        embeddings: float32 (total, d), the sentences of all documents.
        offsets: int64 (n + 1,), where each document's sentences begin.
        clusters: int64 (n,), the clusters to predict.
        held: bool (n,), the documents that are held out, for the accuracy.
        seed: the seed of the initial weights, the order of documents and the dropout.
    """
    generator = np.random.default_rng(seed)
    centre, spread = embeddings.mean(axis=0), float(embeddings.std())
    sentences = (embeddings - centre) / np.float32(spread)
    network = _Network([embeddings.shape[1], *WIDTHS, int(clusters.max()) + 1], generator)
    optimiser = _AdamW(network.parameters)
    lengths = np.diff(offsets)
    used, tested = np.flatnonzero(~held), np.flatnonzero(held)

    def some(documents: npt.NDArray[np.int64]) -> tuple[_Floats, npt.NDArray[np.int64]]:
        rows = np.concatenate([np.arange(offsets[i], offsets[i + 1]) for i in documents])
        return sentences[rows], lengths[documents]

    losses, accuracies = [], []
    with threadpool_limits(1):  # sums of products have other digits on more threads
        for epoch in range(_EPOCHS):
            rate = _RATE * (1 + np.cos(np.pi * epoch / _EPOCHS)) / 2
            order = generator.permutation(used)
            total = 0.0
            for start in range(0, len(order), _BATCH):
                batch = order[start : start + _BATCH]
                loss, gradients = network.gradients(*some(batch), clusters[batch], generator)
                optimiser.step(gradients, rate)
                total += loss * len(batch)
            losses.append(total / len(used))
            found = network.scores(*some(tested)).argmax(axis=1)
            accuracies.append(float((found == clusters[tested]).mean()))
        measured = network.codes(sentences[:: max(1, len(sentences) // _MEASURED)])
    recoder = _folded(network, centre, spread, float(measured.std(ddof=1)))
    return recoder, TrainingCourse(tuple(losses), tuple(accuracies))


class _Network:
    """The recoder's layers for every sentence, and a linear layer after a document's mean code."""

    def __init__(self, sizes: Sequence[int], generator: np.random.Generator) -> None:
        self.weights: list[_Floats] = []
        self.biases: list[_Floats] = []
        for inputs, outputs in zip(sizes, sizes[1:], strict=False):
            for parts, shape in ((self.weights, (inputs, outputs)), (self.biases, (outputs,))):
                drawn = generator.uniform(-1, 1, shape) / np.sqrt(inputs)
                parts.append(drawn.astype(np.float32))

    @property
    def parameters(self) -> list[_Floats]:
        """Return the arrays that training changes in place: weights, then biases."""
        return [*self.weights, *self.biases]

    def codes(self, sentences: _Floats) -> _Floats:
        """Return the codes of sentences (n, d), without dropout: (n, WIDTHS[-1])."""
        values = sentences
        for weights, bias in zip(self.weights[:-2], self.biases[:-2], strict=True):
            values = np.maximum(values @ weights + bias, 0)
        return values @ self.weights[-2] + self.biases[-2]

    def scores(self, sentences: _Floats, lengths: npt.NDArray[np.int64]) -> _Floats:
        """Return each document's score of every cluster; `lengths` are its sentences' numbers."""
        return _means(self.codes(sentences), lengths) @ self.weights[-1] + self.biases[-1]

    def gradients(
        self,
        sentences: _Floats,
        lengths: npt.NDArray[np.int64],
        clusters: npt.NDArray[np.int64],
        generator: np.random.Generator,
    ) -> tuple[float, list[_Floats]]:
        """Return the mean cross-entropy under dropout, and its gradient by every parameter."""
        inputs = [sentences]  # of each layer
        passed: list[_Floats] = []  # of each hidden layer: what its output is multiplied by
        for weights, bias in zip(self.weights[:-2], self.biases[:-2], strict=True):
            values = inputs[-1] @ weights + bias
            kept = generator.random(values.shape, dtype=np.float32) >= _DROPOUT
            passed.append((kept & (values > 0)) * np.float32(1 / (1 - _DROPOUT)))
            inputs.append(values * passed[-1])
        means = _means(inputs[-1] @ self.weights[-2] + self.biases[-2], lengths)
        logs = log_softmax(means @ self.weights[-1] + self.biases[-1], axis=1)
        documents = np.arange(len(clusters))
        by_score = np.exp(logs)
        by_score[documents, clusters] -= 1
        by_score /= np.float32(len(clusters))

        by_weights, by_biases = [means.T @ by_score], [by_score.sum(axis=0)]
        by_mean = by_score @ self.weights[-1].T / lengths[:, None].astype(np.float32)
        by_output = np.repeat(by_mean, lengths, axis=0)
        for layer in range(len(inputs) - 1, -1, -1):
            by_weights.insert(0, inputs[layer].T @ by_output)
            by_biases.insert(0, by_output.sum(axis=0))
            if layer:
                by_output = by_output @ self.weights[layer].T * passed[layer - 1]
        return -float(logs[documents, clusters].mean()), [*by_weights, *by_biases]


class _AdamW:
    """Adam with weight decay apart from the gradients."""

    def __init__(self, parameters: Sequence[_Floats]) -> None:
        self._parameters = parameters
        self._means = [np.zeros_like(values) for values in parameters]
        self._squares = [np.zeros_like(values) for values in parameters]
        self._steps = 0

    def step(self, gradients: Sequence[_Floats], rate: float) -> None:
        """Change the parameters in place."""
        self._steps += 1
        size = np.float32(rate / (1 - _MEAN_DECAY**self._steps))
        scale = np.float32(1 / (1 - _SQUARE_DECAY**self._steps))
        for i, gradient in enumerate(gradients):
            mean, square, values = self._means[i], self._squares[i], self._parameters[i]
            mean += np.float32(1 - _MEAN_DECAY) * (gradient - mean)
            square += np.float32(1 - _SQUARE_DECAY) * (gradient * gradient - square)
            values *= np.float32(1 - rate * _DECAY)
            values -= size * mean / (np.sqrt(square * scale) + np.float32(_LEAST))


def _means(codes: _Floats, lengths: npt.NDArray[np.int64]) -> _Floats:
    """Return the mean code of each document, none of which is empty."""
    starts = np.concatenate([[0], np.cumsum(lengths[:-1])])
    found: _Floats = np.add.reduceat(codes, starts, axis=0)
    found /= lengths[:, None].astype(np.float32)
    return found


def _folded(network: _Network, centre: _Floats, spread: float, deviation: float) -> Recoder:
    """Fold the scales of embeddings and of the codes' grid into the first and last layer."""
    weights = [values.astype(np.float64) for values in network.weights[:-1]]
    biases = [values.astype(np.float64) for values in network.biases[:-1]]
    weights[0] = weights[0] / spread
    biases[0] = biases[0] - centre.astype(np.float64) @ weights[0]
    weights[-1] = weights[-1] * (TYPICAL / deviation)
    biases[-1] = biases[-1] * (TYPICAL / deviation)
    return Recoder(
        [np.ascontiguousarray(values, dtype=np.float32) for values in weights],
        [values.astype(np.float32) for values in biases],
    )
