"""Measures of word vectors against a gold model's neighbourhoods and people's judgement.

Mean average precision of each word's nearest words against those of a gold model, by the rule of
Vu, Tran and Jiang (slides of dpUGC, CICLing 2019, section 3) and over whole lists; rank correlation
with word pairs that people have scored.
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
    """Compute MAP-Word, float64 (n,): each word's average precision over its *hits*, 0 without any.

    A hit is a word of the found list that the gold list has, and the precision at its place is the
    share of hits up to there. This is the rule that dpUGC's slides follow (evaluations, results
    #1a): one hit at place 2 of 4 gives .5. A right word that the list lacks costs nothing.
    """
    sums, hits = _precision(_hits(found, gold))
    scores: npt.NDArray[np.float64] = sums / np.maximum(hits, 1)
    return scores


def map_list(found: Ranked, gold: Ranked) -> npt.NDArray[np.float64]:
    """Compute each word's average precision over its whole list, float64 (n,).

    The sum of `map_word` is divided by the length of the list, so that a right word that the list
    lacks counts as 0: one hit at place 2 of 4 gives .125. It is 1 for the same words in any order.
    """
    sums, _ = _precision(_hits(found, gold))
    scores: npt.NDArray[np.float64] = sums / found.shape[1]
    return scores


def map_letters(found: Ranked, gold: Ranked, words: Sequence[str]) -> npt.NDArray[np.float64]:
    """Compute `map_list`, where a listed word is right as far as its letters are a right word's.

    Its relevance is the largest Dice coefficient of the word's pairs of neighbouring letters (with
    its edges) with those of a word of the gold list. It stands in for dpUGC's MAP-Char, whose rule
    the slides do not state, and does not give their numbers.
    """
    pairs = [*map(_letters, words), frozenset[str]()]  # the last belongs to no word
    relevance = np.array(
        [
            [max(_dice(pairs[word], pairs[other]) for other in own) for word in listed]
            for listed, own in zip(found.tolist(), gold.tolist(), strict=True)
        ]
    )
    sums, _ = _precision(relevance)
    scores: npt.NDArray[np.float64] = sums / found.shape[1]
    return scores


def _hits(found: Ranked, gold: Ranked) -> npt.NDArray[np.float64]:
    """Return 1 for each listed word that the gold list has, and 0 for others, (n, k)."""
    right = (found[:, :, None] == gold[:, None, :]).any(axis=2) & (found >= 0)
    hits: npt.NDArray[np.float64] = right.astype(np.float64)
    return hits


def _precision(
    relevance: npt.NDArray[np.float64],
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Add up relevance times precision over the places of each list; return it, and all relevance.

    `relevance` is (n, k), 0 to 1; both sums are (n,).
    """
    so_far = np.cumsum(relevance, axis=1)
    places = np.arange(1, relevance.shape[1] + 1)
    return np.sum(relevance * so_far / places, axis=1), so_far[:, -1]


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
