"""Exact expectations under the exponential mechanism on documents, without drawing."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from quietcorpus.indexes.recoder import means


def expected(
    utilities: npt.NDArray[np.int32], rate: float, values: npt.NDArray[np.floating]
) -> npt.NDArray[np.float64]:
    """Compute the mean of a value of the drawn candidate, for each document: float64 (n,).

    Args:
        utilities: int32 (n, m), of every candidate for every document.
        rate: the amount that a unit of utility adds to the logarithm of a candidate's weight.
        values: (n, m), of every candidate for every document.
    """
    gaps = utilities - utilities.max(axis=1, keepdims=True)
    weights = np.exp(rate * gaps)
    return np.asarray((weights * values).sum(axis=1) / weights.sum(axis=1))


def closeness(
    sentences: npt.NDArray[np.float32],
    offsets: npt.NDArray[np.int64],
    candidates: npt.NDArray[np.float32],
    centre: npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]:
    """Compute cosines of documents' mean embeddings with candidates, from the centre: (n, m).

    They are float64.
    """
    documents, others = means(sentences, offsets) - centre, candidates - centre
    lengths = (np.linalg.norm(vectors, axis=1, keepdims=True) for vectors in (documents, others))
    units = [
        vectors / np.maximum(length, np.finfo(float).tiny)
        for vectors, length in zip((documents, others), lengths, strict=True)
    ]
    return np.asarray(units[0] @ units[1].T)
