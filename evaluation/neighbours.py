"""Distances from words to their k-th nearest neighbours (figure 2 of the Madlib paper)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

_WORDS_AT_ONCE = 32


def euclidean_neighbours(
    vectors: npt.NDArray[np.float32], words: npt.NDArray[np.int64], ranks: Sequence[int]
) -> npt.NDArray[np.float64]:
    """Measure Euclidean distances to the k-th nearest other word, float64 (n, len(ranks)).

    Neighbours are found by a float32 product, and their distances computed in float64.

    Args:
        vectors: float32 (V, d).
        words: int64 (n,), the words to start from.
        ranks: the values of k, 1 to V - 1.

    Raises:
        ValueError: a rank out of range.
    """
    _check(ranks, len(vectors))
    half = np.einsum("ij,ij->i", vectors, vectors) / np.float32(2)
    found = np.empty((len(words), len(ranks)))
    with threadpool_limits(limits=1, user_api="blas"):
        for start in range(0, len(words), _WORDS_AT_ONCE):
            block = words[start : start + _WORDS_AT_ONCE]
            far = half - vectors[block] @ vectors.T
            for i, word in enumerate(block):
                far[i, word] = np.inf
                near = np.argpartition(far[i], max(ranks) - 1)[: max(ranks)]
                differences = vectors[near].astype(np.float64) - vectors[word]
                found[start + i] = _ranked(np.linalg.norm(differences, axis=1), ranks)
    return found


def hamming_neighbours(
    codes: npt.NDArray[np.uint64], words: npt.NDArray[np.int64], ranks: Sequence[int]
) -> npt.NDArray[np.float64]:
    """Measure Hamming distances to the k-th nearest other word, in bits, float64 (n, len(ranks)).

    Args:
        codes: uint64 (V, words of 64 bits).
        words: int64 (n,), the words to start from.
        ranks: the values of k, 1 to V - 1.

    Raises:
        ValueError: a rank out of range.
    """
    _check(ranks, len(codes))
    found = np.empty((len(words), len(ranks)))
    for i, word in enumerate(words):
        distances = np.bitwise_count(codes ^ codes[word]).sum(axis=1, dtype=np.int64)
        found[i] = _ranked(np.delete(distances, word), ranks)
    return found


def _check(ranks: Sequence[int], size: int) -> None:
    if not ranks or min(ranks) < 1 or max(ranks) >= size:
        raise ValueError(
            f"ranks are {list(ranks)}; with {size} words, name some of 1 to {size - 1}"
        )


def _ranked(distances: npt.NDArray[np.number], ranks: Sequence[int]) -> npt.NDArray[np.number]:
    places = np.array(ranks) - 1
    nearest: npt.NDArray[np.number] = np.partition(distances, places)[places]
    return nearest
