"""Latent semantic analysis: the share of held-out documents that a few directions of terms hold.

Deerwester, Dumais, Furnas, Landauer and Harshman (1990), with the weights of Dumais (1991) less
their global part: log(1 + count), documents scaled to unit length, no idf. Only the directions are
therefore learnt from documents.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

_SPARSE = 8
"""Where fewer than one in `_SPARSE` cells of a matrix are filled, a sparse product is faster."""
_MOST_CELLS = 1 << 27  # a gigabyte


def weighted(counts: sp.csr_array) -> sp.csr_array:
    """Weight counts as log(1 + count), each row scaled to unit length; an empty row stays empty.

    Counts are non-negative, shape (n, V); the weights are float64 of the same shape.

    Raises:
        ValueError: a negative count.
    """
    weights = sp.csr_array(counts, dtype=np.float64, copy=True)
    weights.sum_duplicates()
    if (weights.data < 0).any():
        raise ValueError(f"a count is {weights.data.min():g}; clip the negative ones to 0 first")
    weights.data = np.log1p(weights.data)
    lengths = np.sqrt(weights.power(2).sum(axis=1))
    weights.data /= np.repeat(np.where(lengths > 0, lengths, 1), np.diff(weights.indptr))
    return weights


def directions(rows: sp.csr_array, dimensions: int, seed: int) -> npt.NDArray[np.float64]:
    """Find the right singular vectors of the largest singular values, float64 (V, dimensions).

    They are orthonormal.

    They are found by a randomised range finder, and exact where `dimensions` + 10 is no less than
    the smaller side of the matrix. Rows that noise has filled are multiplied as a dense matrix,
    which rounds otherwise.

    Args:
        rows: float64 (n, V), as of `weighted`.
        dimensions: 1 to min(n, V).
        seed: the seed of the range finder.

    Raises:
        ValueError: more dimensions than the matrix can have.
    """
    from sklearn.utils.extmath import randomized_svd

    if not 1 <= dimensions <= min(rows.shape):
        raise ValueError(
            f"{dimensions} dimensions are asked for; {rows.shape[0]} documents of "
            f"{rows.shape[1]} terms have 1 to {min(rows.shape)}"
        )
    cells = rows.shape[0] * rows.shape[1]
    dense = _SPARSE * rows.nnz > cells and cells <= _MOST_CELLS
    matrix = rows.toarray() if dense else rows
    _, _, found = randomized_svd(matrix, dimensions, random_state=seed)
    return np.asarray(found.T, dtype=np.float64)


def reconstruction_errors(
    counts: sp.csr_array, dimensions: int, folds: int, seed: int
) -> npt.NDArray[np.float64]:
    """Measure what the directions of all other folds miss of each fold, relative to its content.

    It is ||X - X V V'||_F^2 / ||X||_F^2, X the weighted documents of the fold and V the directions
    of the others: 0 if nothing is missed, 1 if everything is. Empty documents are left out before
    the folds are made, since they have no content to miss.

    Args:
        counts: non-negative, shape (n, V).
        dimensions: of the latent space; at most V, and the documents of all folds but one.
        folds: 2 or more, of random documents.
        seed: the seed of the folds and of the range finder.

    Returns:
        float64 (folds,). The folds share training documents, and so are not independent.

    Raises:
        ValueError: fewer documents than folds, or more dimensions than there can be.
    """
    from sklearn.model_selection import KFold

    rows = weighted(counts)
    rows = rows[rows.sum(axis=1) > 0]
    if not 2 <= folds <= rows.shape[0]:
        raise ValueError(
            f"{folds} folds of {rows.shape[0]} documents that are not empty; there must be at "
            "least 2, and a document for each"
        )
    splits = KFold(folds, shuffle=True, random_state=seed).split(np.empty(rows.shape[0]))
    return np.array(
        [_missed(rows[test], directions(rows[rest], dimensions, seed)) for rest, test in splits]
    )


def _missed(rows: sp.csr_array, basis: npt.NDArray[np.float64]) -> float:
    # For an orthonormal basis this is the error of the docstring, without a dense (n, V).
    return max(0.0, 1 - float(((rows @ basis) ** 2).sum() / (rows.data**2).sum()))
