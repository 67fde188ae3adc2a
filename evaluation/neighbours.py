"""Distances from words to their k-th nearest neighbours (Madlib, PrivateNLP 2020, figure 2)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from quietcorpus.indexes.search.faiss_library import faiss


def euclidean_neighbours(
    vectors: npt.NDArray[np.float32], words: npt.NDArray[np.int64], ranks: Sequence[int]
) -> npt.NDArray[np.float64]:
    """Measure Euclidean distances to the k-th nearest other word, float64 (n, len(ranks)).

    FAISS finds the neighbours in float32, and their distances are computed in float64.

    Args:
        vectors: float32 (V, d).
        words: int64 (n,), the words to start from.
        ranks: the values of k, 1 to V - 1.

    Raises:
        ValueError: a rank out of range.
    """
    _check(ranks, len(vectors))
    _, near = faiss().knn(vectors[words], vectors, max(ranks) + 1)
    distances = [
        np.sort(np.linalg.norm(vectors[found].astype(np.float64) - vectors[word], axis=1))
        for word, found in zip(words, near, strict=True)
    ]
    return np.array(distances)[:, ranks]  # in place 0 is the word itself, at distance zero


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
    octets = codes.view(np.uint8)
    distances, _ = faiss().knn_hamming(octets[words], octets, max(ranks) + 1)
    found: npt.NDArray[np.float64] = distances[:, ranks].astype(np.float64)
    return found  # in place 0 is the word itself, at distance zero


def _check(ranks: Sequence[int], size: int) -> None:
    if not ranks or min(ranks) < 1 or max(ranks) >= size:
        raise ValueError(
            f"ranks are {list(ranks)}; with {size} words, name some of 1 to {size - 1}"
        )
