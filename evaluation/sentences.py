"""Measures of released embeddings of documents, beside the documents' own."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_NEXT = 50  # documents whose pairs with a document count
_EQUAL = 1e-9  # what cosines differ by that are equal but for rounding


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


def agreement(own: npt.NDArray[np.floating], released: npt.NDArray[np.floating]) -> float:
    """Correlate released rows' cosines between documents with those of the documents' own rows.

    It is the measure of representational similarity analysis (Kriegeskorte, Mur and Bandettini
    2008), over pairs: each document with the next 50 at most, in a circle. No pair counts twice,
    and those across a circle of an even number not at all. It is 0 where no pair differs from
    another. Both are (n, d), from a centre.
    """
    pairs = np.array(
        [
            [(units * np.roll(units, -step, axis=0)).sum(axis=1) for step in _steps(len(own))]
            for units in map(_units, (own, released))
        ]
    ).reshape(2, -1)
    if pairs.size == 0 or pairs.std(axis=1).min() < _EQUAL:
        return 0.0
    return float(np.corrcoef(pairs)[0, 1])


def _steps(documents: int) -> range:
    """Return steps from a document to others by which no pair comes twice."""
    return range(1, min(_NEXT, (documents - 1) // 2) + 1)


def _units(vectors: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, np.finfo(float).tiny))
