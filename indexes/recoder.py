"""The recoder: an MLP after the frozen encoder, which brings documents of one kind close together.

Meehan, Mrini and Chaudhuri: Sentence-level privacy for document embeddings (ACL 2022), section 4.5.
It is trained on public documents so that a linear layer predicts a document's cluster from the mean
of its recoded sentences.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from quietcorpus.compiled import compiled

WIDTHS = 256, 256, 128, 64
"""The sizes of the four layers; projections are taken of the last one."""
LARGEST = 1 << 20
"""The largest recoded coordinate: larger ones are clipped to it."""
_TYPICAL = 1 << 10  # the standard deviation of a recoded coordinate, in steps of its grid
_EPOCHS, _BATCH, _RATE, _DECAY, _DROPOUT = 60, 64, 1e-3, 1e-4, 0.3


@dataclass(frozen=True, eq=False)
class Recoder:
    """The trained layers, each float32: `weights` (inputs, outputs) and `biases` (outputs,).

    A sentence's code is a function of its embedding alone, bit by bit and on every machine: sums
    run in one order, with one rounding per operation, and every operation is a product, a sum or a
    maximum.
    """

    weights: Sequence[npt.NDArray[np.float32]]
    biases: Sequence[npt.NDArray[np.float32]]

    def recode(self, embeddings: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
        """Recode embeddings (n, d) as vectors of whole numbers, float64 (n, WIDTHS[-1]).

        Raises ValueError for values that are not finite, or too large for finite codes.
        """
        if not np.isfinite(embeddings).all():
            raise ValueError("an embedding is not finite")
        values = np.ascontiguousarray(embeddings, dtype=np.float32)
        last = len(self.weights) - 1
        for layer, (weights, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            values = _layer(values, weights, bias, layer < last)
        if not np.isfinite(values).all():
            raise ValueError("an embedding is too long for the recoder")
        return np.clip(np.rint(values.astype(np.float64)), -LARGEST, LARGEST)


@dataclass(frozen=True)
class TrainingCourse:
    """The course of a training: each epoch's mean cross-entropy and held-out accuracy."""

    losses: tuple[float, ...]
    accuracies: tuple[float, ...]


def means(
    vectors: npt.NDArray[np.floating], offsets: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """Compute the mean of every document's vectors, float64 (n, d); zeros if there are none."""
    lengths = np.diff(offsets)
    found = np.zeros((len(lengths), vectors.shape[1]))
    some = lengths > 0
    if some.any():
        sums = np.add.reduceat(vectors.astype(np.float64), offsets[:-1][some], axis=0)
        found[some] = sums / lengths[some, None]
    return found


def train(
    embeddings: npt.NDArray[np.float32],
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
    import torch
    from torch import nn

    torch.manual_seed(seed)
    torch.set_num_threads(1)
    centre, spread = embeddings.mean(axis=0), float(embeddings.std())
    sentences = torch.from_numpy((embeddings - centre) / spread)
    targets = torch.from_numpy(clusters)
    lengths = np.diff(offsets)
    sizes = [embeddings.shape[1], *WIDTHS]
    layers = [nn.Linear(a, b) for a, b in zip(sizes, sizes[1:], strict=False)]
    steps: list[nn.Module] = []
    for layer in layers[:-1]:
        steps += [layer, nn.ReLU(), nn.Dropout(_DROPOUT)]
    recoder = nn.Sequential(*steps, layers[-1])
    head = nn.Linear(WIDTHS[-1], int(clusters.max()) + 1)
    parameters = [*recoder.parameters(), *head.parameters()]
    optimiser = torch.optim.AdamW(parameters, lr=_RATE, weight_decay=_DECAY)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, _EPOCHS)

    def scores(documents: npt.NDArray[np.int64]) -> torch.Tensor:
        rows = np.concatenate([np.arange(offsets[i], offsets[i + 1]) for i in documents])
        whose = np.repeat(np.arange(len(documents)), lengths[documents])
        recoded = recoder(sentences[torch.from_numpy(rows)])
        sums = torch.zeros(len(documents), WIDTHS[-1])
        sums.index_add_(0, torch.from_numpy(whose), recoded)
        scored: torch.Tensor = head(sums / torch.from_numpy(lengths[documents])[:, None])
        return scored

    generator = np.random.default_rng(seed)
    used, tested = np.flatnonzero(~held), np.flatnonzero(held)
    losses, accuracies = [], []
    for _ in range(_EPOCHS):
        recoder.train()
        order = generator.permutation(used)
        total = 0.0
        for start in range(0, len(order), _BATCH):
            batch = order[start : start + _BATCH]
            loss = nn.functional.cross_entropy(scores(batch), targets[torch.from_numpy(batch)])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            total += float(loss.detach()) * len(batch)
        schedule.step()
        losses.append(total / len(used))
        recoder.eval()
        with torch.inference_mode():
            found = scores(tested).argmax(dim=1).numpy()
        accuracies.append(float((found == clusters[tested]).mean()))
    with torch.inference_mode():
        deviation = float(recoder(sentences[:: max(1, len(sentences) // 10_000)]).std())
    return _folded(layers, centre, spread, deviation), TrainingCourse(
        tuple(losses), tuple(accuracies)
    )


def _folded(layers: list, centre: np.ndarray, spread: float, deviation: float) -> Recoder:
    """Fold the scales of embeddings and of the codes' grid into the first and last layer."""
    weights = [layer.weight.detach().numpy().T.astype(np.float64) for layer in layers]
    biases = [layer.bias.detach().numpy().astype(np.float64) for layer in layers]
    weights[0] = weights[0] / spread
    biases[0] = biases[0] - centre.astype(np.float64) @ weights[0]
    weights[-1] = weights[-1] * (_TYPICAL / deviation)
    biases[-1] = biases[-1] * (_TYPICAL / deviation)
    return Recoder(
        [np.ascontiguousarray(w, dtype=np.float32) for w in weights],
        [b.astype(np.float32) for b in biases],
    )


@compiled
def _layer(values, weights, bias, rectified):  # type: ignore[no-untyped-def]
    rows, inputs = values.shape
    outputs = weights.shape[1]
    found = np.empty((rows, outputs), dtype=np.float32)
    for row in range(rows):
        sums = found[row]
        sums[:] = bias
        for i in range(inputs):
            value = values[row, i]
            if value != 0:
                for o in range(outputs):
                    sums[o] += value * weights[i, o]
        if rectified:
            for o in range(outputs):
                sums[o] = max(sums[o], np.float32(0))
    return found
