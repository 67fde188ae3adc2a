"""Co-occurrence counts of a corpus, to which each user has added a vector of bounded length.

The counts of all users are released once, with Gaussian noise on every pair of words; whatever is
made of them afterwards is post-processing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from quietcorpus.mechanisms.word_pairs import Words, balanced_weights

Cells = npt.NDArray[np.int64]
"""Places in the packed upper triangle of a symmetric matrix, row after row, with its diagonal."""


def cells_of(size: int) -> int:
    """The number of pairs of `size` words, each word with itself among them."""
    return size * (size + 1) // 2


def packed(low: npt.NDArray[np.int64], high: npt.NDArray[np.int64], size: int) -> Cells:
    """Where the pairs low <= high of `size` words lie."""
    return low * size - low * (low - 1) // 2 + high - low


def contribution(
    texts: Sequence[Words], window: int, size: int
) -> tuple[Cells, npt.NDArray[np.float64]]:
    """A user's counts: distinct cells, ascending, and their values, float64, of norm 1 in all.

    All users have the same length, those who wrote little too: on real text that was as good as any
    norm to clip at.
    """
    low, high, weights = balanced_weights(texts, window)
    return packed(low, high, size), weights / np.linalg.norm(weights)
