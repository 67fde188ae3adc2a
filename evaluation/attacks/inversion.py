"""Word inversion: priors over words, and words by how frequent they are.

`best_guess` guesses the original word from the one that a word mechanism released.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

_SHIFT = 2.7
_EDGES = (100, 1_000, 10_000)


def zipf(ranks: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Compute a public prior: probabilities proportional to 1 / (rank + 2.7), which sum to one.

    Ranks are by frequency, 1 for the most frequent word, int64 (n,). It is Mandelbrot's (1953) form
    of Zipf's law, with the constants for English of Piantadosi (2014).
    """
    weights = 1 / (ranks + _SHIFT)
    prior: npt.NDArray[np.float64] = weights / weights.sum()
    return prior


def by_frequency(
    ranks: npt.NDArray[np.int64], edges: Sequence[int] = _EDGES
) -> dict[str, npt.NDArray[np.bool_]]:
    """Mark the words of each band of frequency, (n,); bands with words only, frequent words first.

    Args:
        ranks: int64 (n,), the rank of each word, from 1.
        edges: the last rank of each band except the open one, ascending.
    """
    places = np.searchsorted(edges, ranks)
    first = [1, *(edge + 1 for edge in edges)]
    labels = [f"{low:,}-{high:,}" for low, high in zip(first, edges, strict=False)]
    bands = enumerate([*labels, f"beyond {edges[-1]:,}"])
    inside = {label: places == number for number, label in bands}
    return {label: band for label, band in inside.items() if band.any()}
