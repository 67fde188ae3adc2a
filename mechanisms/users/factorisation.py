"""Word vectors from noisy co-occurrence counts: post-processing of the released counts.

Levy, Goldberg and Dagan: Improving distributional similarity with lessons learned from word
embeddings (TACL 2015): positive pointwise mutual information with smoothed contexts, factorised by
a truncated singular value decomposition whose values are divided equally.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.linalg import svd
from scipy.sparse.linalg import svds

_SMOOTHING = 0.75
_DEVIATIONS = 4.0
"""Noise deviations above which a count is believed: fewer let noise in, more leave words out."""
_DENSE = 1000  # rows


@dataclass(frozen=True, eq=False)
class Factorised:
    """The result of factorising the counts.

    Attributes:
        vectors: float32 (V, d); zeros for a word none of whose counts stands out of the noise.
        supported: bool (V,), whether a word has such a count.
    """

    vectors: npt.NDArray[np.float32]
    supported: npt.NDArray[np.bool_]


def factorise(
    counts: npt.NDArray[np.int64], deviation: float, size: int, dimensions: int
) -> Factorised:
    """Compute vectors of `size` words from their noisy counts.

    `counts` is the packed upper triangle, row after row, int64; `deviation` is the standard
    deviation of the noise on each.
    """
    believed, margins = _believed(counts, _DEVIATIONS * deviation, size)
    information = _information(believed, margins)
    supported = np.diff(information.indptr) > 0
    vectors = np.zeros((size, dimensions), dtype=np.float32)
    rank = min(dimensions, size - 1, int(supported.sum()))
    if rank:
        # Words without information are left out: rounding would give them small vectors.
        left, values = _largest(information[supported], rank)
        found = left * np.sqrt(np.maximum(values, 0))
        # A singular vector's sign is arbitrary; its largest entry is made positive.
        found *= np.where(found[np.abs(found).argmax(axis=0), np.arange(rank)] < 0, -1, 1)
        vectors[supported, :rank] = np.nan_to_num(found)
    return Factorised(vectors, supported)


def _largest(
    matrix: sparse.csr_matrix, rank: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the left singular vectors (n, rank) of the largest singular values, and the values.

    A small matrix, or one of hardly more rows than `rank`, takes the dense computation: ARPACK
    needs many more rows, and fails where words form small components of two or three.
    """
    if len(matrix.indptr) - 1 <= max(_DENSE, 4 * rank):
        dense = matrix[:, np.unique(matrix.indices)].toarray()
        left, values, _ = svd(dense, full_matrices=False)
        # There may be fewer columns than rows.
        some = min(rank, len(values))
        left = np.pad(left[:, :some], ((0, 0), (0, rank - some)))
        return left, np.pad(values[:some], (0, rank - some))
    start = np.ones(min(matrix.shape))
    left, values, _ = svds(matrix, k=rank, v0=start, solver="arpack", rng=0)
    order = np.argsort(-values, kind="stable")
    return left[:, order], values[order]


def _believed(
    counts: npt.NDArray[np.int64], least: float, size: int
) -> tuple[sparse.csr_matrix, npt.NDArray[np.float64]]:
    """Return the counts above `least`, symmetric, and the sum of all counts of each word."""
    margins = np.zeros(size)
    rows, columns, values = [], [], []
    start = 0
    for row in range(size):
        own = counts[start : start + size - row]
        start += size - row
        margins[row:] += own
        margins[row] += own.sum()  # the pair of a word with itself counts in both orders
        above = np.flatnonzero(own > least)
        rows.append(np.full(len(above), row))
        columns.append(above + row)
        values.append(own[above].astype(np.float64))
    triangle = sparse.csr_matrix(
        (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), (size, size)
    )
    return (triangle + triangle.T).tocsr(), margins


def _information(
    believed: sparse.csr_matrix, margins: npt.NDArray[np.float64]
) -> sparse.csr_matrix:
    """Compute positive pointwise mutual information of the pairs whose counts are believed."""
    own = np.asarray(believed.sum(axis=1)).ravel()
    # The sum of all of a word's counts is nearer to the truth than the sum of the believed ones,
    # except where noise has made it smaller.
    weights = np.maximum(margins, own)
    contexts = weights**_SMOOTHING
    pairs = believed.tocoo()
    if not pairs.nnz:
        return believed
    expected = weights[pairs.row] * contexts[pairs.col] / contexts.sum()
    information = np.maximum(np.log(pairs.data / expected), 0)
    kept = information > 0
    return sparse.csr_matrix(
        (information[kept], (pairs.row[kept], pairs.col[kept])), believed.shape
    )
