"""Generated word vectors with the norms, and the distances between neighbours, of real ones."""

from __future__ import annotations

import os

import numpy as np
import numpy.typing as npt

from quietcorpus.indexes.faiss_library import faiss

Vectors = npt.NDArray[np.float32]

RANKS = (1, 10, 100)
AT_ONCE = 50_000


def fill(made: Vectors, real: Vectors) -> None:
    """Generate the rows of `made` from `real`, both float32 (n, d).

    Each is a real vector, moved in the direction between two others by the distance between real
    neighbours of a rank from 1 to 100 (over sqrt(2): two that move apart), at its own norm.
    """
    generator = np.random.default_rng(1)
    squares, _ = faiss(os.cpu_count() or 1).knn(real, real, RANKS[-1] + 1)
    radii = np.sqrt(np.maximum(squares[:, 1:], 0) / 2)
    norms = np.linalg.norm(real, axis=1)
    for start in range(0, len(made), AT_ONCE):
        count = min(AT_ONCE, len(made) - start)
        own, one, other = generator.integers(len(real), size=(3, count))
        other += other == one
        ranks = np.exp(generator.uniform(0, np.log(RANKS[-1]), count)).astype(int) - 1
        moves = real[one] - real[other % len(real)]
        moves *= (radii[own, ranks] / np.linalg.norm(moves, axis=1))[:, None]
        block = real[own] + moves
        made[start : start + count] = block * (norms[own] / np.linalg.norm(block, axis=1))[:, None]
