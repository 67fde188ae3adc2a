"""The recoder: an MLP after the frozen encoder, which brings documents of one kind close together.

Meehan, Mrini and Chaudhuri: Sentence-level privacy for document embeddings (ACL 2022), section 4.3.
`recoder_training` fits it to public documents so that a linear layer predicts a document's cluster
from the mean of its recoded sentences. Departing from the paper, whose four layers keep the
encoder's 768 dimensions, the layers narrow to 64.
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
TYPICAL = 1 << 10
"""The standard deviation of a recoded coordinate, in steps of its grid."""


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


def means(
    vectors: npt.NDArray[np.floating | np.integer], offsets: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """Compute the mean of every document's vectors, float64 (n, d); zeros if there are none."""
    lengths = np.diff(offsets)
    found = np.zeros((len(lengths), vectors.shape[1]))
    some = lengths > 0
    if some.any():
        sums = np.add.reduceat(vectors.astype(np.float64), offsets[:-1][some], axis=0)
        found[some] = sums / lengths[some, None]
    return found


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
