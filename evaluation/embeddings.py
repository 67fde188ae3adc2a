"""Measures of word vectors against a gold model's neighbourhoods and people's judgement.

Vu, Tran and Jiang: dpUGC (CICLing 2019), section 5: mean average precision of each word's nearest
words against those of a gold model, by words and by their characters; rank correlation with word
pairs that people have scored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from scipy.stats import spearmanr

Vectors = npt.NDArray[np.floating]
Ranked = npt.NDArray[np.int64]
"""The nearest words of each of n words, the nearest first, int64 (n, k); -1 where there is none."""


def nearest(vectors: Vectors, words: npt.NDArray[np.int64], k: int) -> Ranked:
    """Find the k words of largest cosine to each of `words`, among all others with a vector.

    A word whose vector is zero counts as having none: it is near to nothing.
    """
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = vectors / np.where(lengths > 0, lengths, 1)
    cosines = unit[words] @ unit.T
    cosines[np.arange(len(words)), words] = -np.inf
    none = lengths[:, 0] == 0
    cosines[:, none] = -np.inf
    cosines[none[words]] = -np.inf
    ranked = np.argsort(-cosines, axis=1, kind="stable")[:, :k]
    found: Ranked = np.where(np.isfinite(np.take_along_axis(cosines, ranked, axis=1)), ranked, -1)
    return found


def map_word(found: Ranked, gold: Ranked) -> npt.NDArray[np.float64]:
    """Compute the average precision of each word's list, float64 (n,), against the gold list.

    The words of the gold list are relevant. The average is, over the places of the gold list, of
    the precision at each relevant place of the found one: 1 for the same words in any order.
    """
    relevant = (found[:, :, None] == gold[:, None, :]).any(axis=2) & (found >= 0)
    return _average_precision(relevant.astype(np.float64))


def map_char(found: Ranked, gold: Ranked, words: Sequence[str]) -> npt.NDArray[np.float64]:
    """Compute the same, where a listed word's relevance is its similarity in letters to the gold.

    It is the largest Dice coefficient of the word's pairs of neighbouring letters (with its edges)
    with those of a word of the gold list: our reading of the paper's MAP-Char.
    """
    pairs = [*map(_letters, words), frozenset[str]()]  # the last is no word's
    relevance = np.array(
        [
            [max(_dice(pairs[word], pairs[other]) for other in own) for word in listed]
            for listed, own in zip(found.tolist(), gold.tolist(), strict=True)
        ]
    )
    return _average_precision(relevance)


def _average_precision(relevance: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    places = np.arange(1, relevance.shape[1] + 1)
    scores: npt.NDArray[np.float64] = np.mean(
        relevance * np.cumsum(relevance, axis=1) / places, axis=1
    )
    return scores


def _letters(word: str) -> frozenset[str]:
    edged = f"<{word}>"
    return frozenset(edged[i : i + 2] for i in range(len(edged) - 1))


def _dice(one: frozenset[str], other: frozenset[str]) -> float:
    return 2 * len(one & other) / max(1, len(one) + len(other))


def similarity(
    vectors: Vectors, numbers: Mapping[str, int], pairs: Sequence[tuple[str, str, float]]
) -> tuple[float, int]:
    """Compute Spearman's correlation of cosines with people's scores; return it and the pair count.

    Pairs with a word that has no number are left out. The correlation of fewer than two is NaN.
    """
    known = [(numbers[a], numbers[b], s) for a, b, s in pairs if a in numbers and b in numbers]
    if len(known) < 2:
        return float("nan"), len(known)
    left, right = (np.array([pair[i] for pair in known]) for i in (0, 1))
    lengths = np.linalg.norm(vectors, axis=1)
    products = np.einsum("ij,ij->i", vectors[left], vectors[right])
    cosines = products / np.maximum(lengths[left] * lengths[right], 1e-12)
    return float(spearmanr(cosines, [score for _, _, score in known]).statistic), len(known)
