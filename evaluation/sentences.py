"""Exact expectations under the exponential mechanism on documents, without drawing."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


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
    documents: npt.NDArray[np.floating],
    released: npt.NDArray[np.floating],
    centre: npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]:
    """Compute cosines of documents' mean embeddings with released ones, from the centre.

    Args:
        documents: (n, d).
        released: (m, d), to compare each document with all of them; or (n, 1, d), each with its
            own.
        centre: float64 (d,).

    Returns:
        float64 (n, m) or (n, 1).
    """
    one, other = (_units(vectors - centre) for vectors in (documents, released))
    return np.asarray((one[:, None] @ np.swapaxes(other, -1, -2)).reshape(len(one), -1))


def _units(vectors: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, np.finfo(float).tiny))
