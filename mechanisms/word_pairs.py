"""Pairs of words that stand near each other in a user's texts.

Mikolov et al.: Distributed representations of words and phrases (NIPS 2013). word2vec draws the
size of each word's window uniformly from 1 to the largest; here every pair has the weight that it
would have on average, so that nothing is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from compiled import compiled

Words = npt.NDArray[np.int32]
"""A text as the numbers of its known words, int32 (n,)."""


def pair_weights(
    texts: Sequence[Words], window: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """The unordered pairs of words at most `window` apart in one of the texts, each once.

    Returns:
        The smaller and the larger number of each pair, int64 (m,) both, in ascending order, and its
        weight, float64 (m,): (window - distance + 1) / window, summed over where it stands.
    """
    lengths = np.array([len(text) for text in texts], dtype=np.int64)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    words = np.concatenate([*texts, np.empty(0, np.int32)]).astype(np.int64)
    low, high, distances = _pairs(words, offsets, window)
    size = int(words.max(initial=0)) + 1
    cells, where = np.unique(low * size + high, return_inverse=True)
    weights = np.bincount(where, (window - distances + 1) / window, len(cells))
    return cells // size, cells % size, weights.astype(np.float64)


@compiled
def _pairs(words, offsets, window):  # type: ignore[no-untyped-def]
    capacity = len(words) * window
    low = np.empty(capacity, dtype=np.int64)
    high = np.empty(capacity, dtype=np.int64)
    distances = np.empty(capacity, dtype=np.int64)
    found = 0
    for text in range(len(offsets) - 1):
        for i in range(offsets[text], offsets[text + 1]):
            for j in range(i + 1, min(i + window + 1, offsets[text + 1])):
                low[found] = min(words[i], words[j])
                high[found] = max(words[i], words[j])
                distances[found] = j - i
                found += 1
    return low[:found], high[:found], distances[:found]
