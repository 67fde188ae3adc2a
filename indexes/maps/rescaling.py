"""Public maps of a vocabulary's vectors, by which distances, and so epsilon, mean something else.

One epsilon does not fit all words: noise that changes a rare word little may change a frequent one
much. An epsilon that depended on the private word would break the proofs of the mechanisms. So the
metric changes instead, once and for all words, before an index is made.

Guarantee:
    The rescaled vectors depend on the vectors, and on weights of words, alone. Their Euclidean
    distance is symmetric, satisfies the triangle inequality, and is 0 for a word and itself,
    whichever the map is. So what a mechanism promises of an index's vectors holds for rescaled ones
    as it is, with epsilon per unit of *their* distance. Where vectors and weights are public, the
    map costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular

_ROWS_AT_ONCE = 4096

Singles = npt.NDArray[np.float32]


def by_covariance(vectors: Singles, share: float) -> Singles:
    """Return vectors whose distances are the regularised Mahalanobis distances, float32 (V, d).

    Xu, Aggarwal, Feyisetan and Teissier: A differentially private text perturbation method using a
    regularized Mahalanobis metric (PrivateNLP 2020). With C = share * S + (1 - share) I, where S is
    the vectors' covariance, scaled to a trace of d, and C = L L^T (Cholesky), a vector x becomes
    L^-1 x: |L^-1 (x - y)|^2 = (x - y)^T C^-1 (x - y). Noise of density proportional to
    exp(-epsilon |z|) there is the paper's noise L z here. The nearest word is another: the nearest
    by this metric, where the paper takes the nearest by the vectors' own.

    Args:
        vectors: float32 (V, d).
        share: the paper's lambda, 0 or more, and below 1.

    Raises:
        ValueError: all vectors are equal.
    """
    dimensions = vectors.shape[1]
    mean = vectors.mean(axis=0, dtype=np.float64)
    covariance = np.zeros((dimensions, dimensions))
    for _, rows in _parts(vectors):
        covariance += (rows - mean).T @ (rows - mean)
    trace = float(np.trace(covariance))
    if trace == 0:
        raise ValueError("holds vectors that are all equal, which have no covariance")
    scaled = covariance * (dimensions / trace)
    factor = np.linalg.cholesky(share * scaled + (1 - share) * np.eye(dimensions))
    found = np.empty_like(vectors)
    for some, rows in _parts(vectors):
        found[some] = solve_triangular(factor, rows.T, lower=True).T
    return found


def by_information(vectors: Singles, weights: npt.NDArray[np.float64], power: float) -> Singles:
    """Return vectors that are nearer to their mean, the rarer their words are, float32 (V, d).

    The information content of a word is i = -log p, where p is its share of all weights; one of
    weight 0 counts as much as the least one above 0. A vector's difference from the mean of all is
    divided by i^power, in units of the mean i. So rare words are nearer to each other, and the same
    epsilon gives them more noise beside their distances.

    Args:
        vectors: float32 (V, d).
        weights: (V,), such as frequencies; finite, and not negative.
        power: above 0.

    Raises:
        ValueError: fewer than two words have a weight that counts.
    """
    positive = weights[weights > 0]
    known = np.maximum(weights, positive.min(initial=np.inf))
    information = -np.log(known / known.sum()) if len(positive) > 1 else np.zeros(len(weights))
    if not information.min() > 0:
        raise ValueError("has words of which one has all the weight, or none has any")
    scales = (information / information.mean()) ** -power
    mean = vectors.mean(axis=0, dtype=np.float64)
    found = np.empty_like(vectors)
    for some, rows in _parts(vectors):
        found[some] = (rows - mean) * scales[some, None]
    return found


def _parts(vectors: Singles) -> Iterator[tuple[slice, npt.NDArray[np.float64]]]:
    """Yield a few rows at a time, in float64: all at once may not fit memory."""
    for start in range(0, len(vectors), _ROWS_AT_ONCE):
        some = slice(start, start + _ROWS_AT_ONCE)
        yield some, vectors[some].astype(np.float64)
