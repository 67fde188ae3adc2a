"""Documents as rows of numbers, for classifiers and attackers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp


def counted(
    offsets: npt.NDArray[np.int64], terms: npt.NDArray[np.int32], size: int
) -> sp.csr_array:
    """Count the terms of each document, int32 (n, V), from its term numbers."""
    ones = np.ones(len(terms), np.int32)
    # A copy: summing works in place, and would reorder the caller's terms. Classifiers take 32-bit
    # offsets only.
    rows = (ones, terms, offsets.astype(np.int32))
    counts = sp.csr_array(rows, (len(offsets) - 1, size), copy=True)
    counts.sum_duplicates()
    return counts


def split(
    classes: npt.NDArray[np.int64], seed: int, share: float = 2 / 3
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Split documents at random into training and test documents, stratified by class."""
    from sklearn.model_selection import train_test_split

    known, test = train_test_split(
        np.arange(len(classes)), train_size=share, random_state=seed, stratify=classes
    )
    return known, test
