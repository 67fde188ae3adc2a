"""Estimates of votes for public texts from noisy sums: texts that are alike have like votes.

Units vote for what is near them, so that their votes follow the texts' embeddings, and the noise
does not. The noisy sums z of a stratum are taken as

    z_i = x_i b + u_i + noise,

a linear function of the text's embedding x_i (with a constant), an effect of that text alone, and
the noise. b is fitted by least squares, and the residuals are shrunk by the noise's share of their
variance (Fay and Herriot, JASA 74, 1979). All is post-processing of the noisy sums, of the public
embeddings and of the noise's public deviation.

The arithmetic is in one order on every machine: whole numbers, and compiled loops in float64.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from quietcorpus.compiled import compiled

from .ballots import Ballots, Sums
from .votes import STANDS_OUT

TEXTS_OF_A_DIMENSION = 4
"""The fewest texts for each number that is fitted: with fewer, the fit would follow the noise."""
Vectors = npt.NDArray[np.float32]
_CONSTANT = 1 << 11  # as long as a text's vector, so that the ridge leaves it alone
_RIDGE = 2.0**-20  # of the mean diagonal: directions that no text has are left at zero


def least_texts(dimensions: int) -> int:
    """Return the size of the smallest pool, by the length of its embeddings."""
    return TEXTS_OF_A_DIMENSION * (dimensions + 1)


def can_smooth(texts: int, dimensions: int) -> bool:
    """Tell whether a pool has texts enough for its embeddings."""
    return texts >= least_texts(dimensions)


def estimates(votes: Ballots, noisy: Sums, vectors: Vectors | None = None) -> Sums:
    """Return the weights of texts, int64 (L, m): 0 for those that do not stand out.

    Without vectors these are the noisy sums, and else `smoothed` ones.
    """
    if vectors is None:
        return np.where(votes.stand_out(noisy), noisy, 0)
    return smoothed(noisy, vectors, votes.deviation)


def smoothed(noisy: Sums, vectors: Vectors, deviation: Fraction) -> Sums:
    """Estimate the votes of every stratum, int64 (L, m); 0 for texts that do not stand out.

    An estimate stands out if it reaches `STANDS_OUT` standard deviations of the noise that is left
    in it (in the mean over texts).

    Args:
        noisy: int64 (L, m), the noisy sums.
        vectors: float32 (m, d), whole numbers of 2^12 at most.
        deviation: the noise's standard deviation.

    Raises:
        ValueError: the pool has too few texts.
    """
    size, dimensions = vectors.shape
    if not can_smooth(size, dimensions):
        raise ValueError(f"{size} texts are too few for {dimensions} dimensions")
    points = np.full((size, dimensions + 1), _CONSTANT, dtype=np.int64)
    points[:, :-1] = vectors
    # Sums of whole numbers below 2^53 are exact in any order.
    exact = points.astype(np.float64)
    products = exact.T @ exact
    products += np.eye(len(products)) * (products.trace() / len(products) * _RIDGE)
    found = np.zeros_like(noisy)
    for stratum, sums in enumerate(noisy):
        fitted = _fitted(products, points, sums @ points)
        found[stratum] = _shrunk(sums, fitted, float(deviation), dimensions + 1)
    return found


def _shrunk(
    sums: npt.NDArray[np.int64],
    fitted: npt.NDArray[np.float64],
    deviation: float,
    parameters: int,
) -> npt.NDArray[np.int64]:
    """Shrink the residuals; return the estimates that stand out, and 0 for others."""
    size = len(sums)
    residuals = sums - fitted
    variance = math.fsum((residuals**2).tolist()) / (size - parameters)
    kept = max(0.0, 1 - deviation**2 / variance) if variance > 0 else 0.0
    share = parameters / size
    # What the noise adds to the fit and to the residuals is independent.
    left = deviation * math.sqrt(share + kept**2 * (1 - share))
    found = np.rint(fitted + kept * residuals).astype(np.int64)
    return np.where(found >= max(1, math.ceil(STANDS_OUT * left)), found, 0)


@compiled
def _fitted(products, points, targets):  # type: ignore[no-untyped-def]
    """Solve for the coefficients by Cholesky's factors, and return the fit of every point.

    Fast mathematics must stay off: every sum is taken in the order of its terms.
    """
    size = len(products)
    lower = np.zeros((size, size))
    for i in range(size):
        for j in range(i + 1):
            total = products[i, j]
            for k in range(j):
                total -= lower[i, k] * lower[j, k]
            lower[i, j] = np.sqrt(total) if i == j else total / lower[j, j]
    found = np.zeros(size)
    for i in range(size):
        total = np.float64(targets[i])
        for k in range(i):
            total -= lower[i, k] * found[k]
        found[i] = total / lower[i, i]
    for i in range(size - 1, -1, -1):
        total = found[i]
        for k in range(i + 1, size):
            total -= lower[k, i] * found[k]
        found[i] = total / lower[i, i]
    fit = np.zeros(len(points))
    for i in range(len(points)):
        total = 0.0
        for k in range(size):
            total += points[i, k] * found[k]
        fit[i] = total
    return fit


def weights(noisy: npt.NDArray[np.int64], chosen: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    """Return the weight of each chosen sum among those of its stratum, float64; others have 0.

    `noisy` and `chosen` are (L, m): strata and items.
    The chosen sums must be above zero. All strata that have any weigh the same. Weights are 1 on
    average, as those of documents without any are: a loss that adds up weighted terms stays in
    proportion to a penalty beside it.
    """
    votes = np.where(chosen, noisy, 0)
    totals = votes.sum(axis=1, keepdims=True)
    each = chosen.sum() / max(1, chosen.any(axis=1).sum())
    found: npt.NDArray[np.float64] = votes / np.maximum(1, totals) * each
    return found


def stand_out(
    noisy: Sums, sizes: npt.NDArray[np.int64], deviation: Fraction
) -> npt.NDArray[np.bool_]:
    """Tell which lists' noisy votes, of all strata together, stand out of their noise, bool (K,).

    They do if their sum reaches `STANDS_OUT` standard deviations of the noise in it. The arithmetic
    is exact.

    Args:
        noisy: int64 (L, m), the noisy sums.
        sizes: int64 (K,), the numbers of the lists' texts, which stand list by list, m in all.
        deviation: the standard deviation of the noise of one sum.

    Raises:
        ValueError: the lists are of another number of texts.
    """
    if sizes.sum() != noisy.shape[1]:
        raise ValueError(f"lists of {sizes.sum()} texts, and sums of {noisy.shape[1]}")
    ends = np.cumsum(sizes)
    before = np.concatenate([[0], np.cumsum(noisy.sum(axis=0))])
    totals = (before[ends] - before[ends - sizes]).tolist()
    least = STANDS_OUT**2 * deviation**2 * len(noisy)
    return np.array(
        [
            size > 0 and total > 0 and total**2 >= least * size
            for total, size in zip(totals, sizes.tolist(), strict=True)
        ]
    )
