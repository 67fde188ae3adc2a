"""Measures of released embeddings, of words and of documents.

Measures of word vectors against a gold model's neighbourhoods and people's judgement.

Mean average precision of each word's nearest words against those of a gold model, by the rule of
Vu, Tran and Jiang (slides of dpUGC, CICLing 2019, section 3) and over whole lists; rank correlation
with word pairs that people have scored.

The Fréchet distance of two sets of embeddings, each as the normal distribution of its moments.

Dowson and Landau (Journal of Multivariate Analysis 12, 1982) give its closed form. Heusel et al.
(NeurIPS 2017) introduced it for embeddings: FID, whose covariances are those of samples. Those of
weighted points are taken here as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.stats import spearmanr

from quietcorpus.mechanisms.sentences.deep_candidate import Depths, Utility, project

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


_NEXT = 50  # documents whose pairs with a document count
_EQUAL = 1e-9  # what cosines differ by that are equal but for rounding


def expected(
    utilities: npt.NDArray[np.int32], rate: float, values: npt.NDArray[np.floating]
) -> npt.NDArray[np.float64]:
    """Compute the mean of a value of the drawn candidate, for each document: float64 (n,).

    Args:
        utilities: int32 (n, m), of every candidate for every document.
        rate: the amount that a unit of utility adds to the logarithm of a candidate's weight.
        values: (n, m), of every candidate for every document.
    """
    gaps = utilities - utilities.max(axis=1, keepdims=True)
    weights = np.exp(rate * gaps)
    return np.asarray((weights * values).sum(axis=1) / weights.sum(axis=1))


def closeness(
    documents: npt.NDArray[np.floating],
    released: npt.NDArray[np.floating],
    centre: npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]:
    """Compute cosines of documents' mean embeddings with released ones, from the centre.

    Args:
        documents: (n, d).
        released: (m, d), to compare each document with all of them; or (n, 1, d), each with its
            own.
        centre: float64 (d,).

    Returns:
        float64 (n, m) or (n, 1).
    """
    one, other = (_units(vectors - centre) for vectors in (documents, released))
    return np.asarray((one[:, None] @ np.swapaxes(other, -1, -2)).reshape(len(one), -1))


def agreement(own: npt.NDArray[np.floating], released: npt.NDArray[np.floating]) -> float:
    """Correlate released rows' cosines between documents with those of the documents' own rows.

    It is the measure of representational similarity analysis (Kriegeskorte, Mur and Bandettini
    2008), over pairs: each document with the next 50 at most, in a circle. No pair counts twice,
    and those across a circle of an even number not at all. It is 0 where no pair differs from
    another. Both are (n, d), from a centre.
    """
    pairs = np.array(
        [
            [(units * np.roll(units, -step, axis=0)).sum(axis=1) for step in _steps(len(own))]
            for units in map(_units, (own, released))
        ]
    ).reshape(2, -1)
    if pairs.size == 0 or pairs.std(axis=1).min() < _EQUAL:
        return 0.0
    return float(np.corrcoef(pairs)[0, 1])


def _steps(documents: int) -> range:
    """Return steps from a document to others by which no pair comes twice."""
    return range(1, min(_NEXT, (documents - 1) // 2) + 1)


def _units(vectors: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, np.finfo(float).tiny))


Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Moments:
    """The mean, (d,), and the covariance, (d, d), of weighted points."""

    mean: Floats
    covariance: Floats

    @classmethod
    def of(cls, points: npt.NDArray[np.floating], weights: npt.NDArray[np.floating]) -> Moments:
        """Compute the moments of points (n, d) with non-negative weights (n,), not all zero.

        The covariance is sum_i w_i (x_i - mean) (x_i - mean)' / sum_i w_i.
        """
        some = weights > 0
        shares = weights[some] / weights[some].sum()
        exact = points[some].astype(np.float64)
        mean = shares @ exact
        centred = (exact - mean) * np.sqrt(shares)[:, None]
        return cls(mean, centred.T @ centred)

    @classmethod
    def drawn(
        cls,
        points: npt.NDArray[np.floating],
        weights: npt.NDArray[np.floating],
        count: int,
        generator: np.random.Generator,
    ) -> Moments:
        """Compute the moments of `count` points that are drawn by their weights.

        Few points look far from anything: the distance's bias falls with their number. So what is
        compared with `count` points is drawn as often.
        """
        chosen = generator.choice(len(weights), count, p=weights / weights.sum())
        return cls.of(points[chosen], np.ones(count))


def frechet_distance(one: Moments, other: Moments) -> float:
    """Compute |m - n|^2 + tr(C + D - 2 (C D)^(1/2)) for means m, n and covariances C, D.

    The eigenvalues of C D are those of the symmetric C^(1/2) D C^(1/2), which are real.
    """
    root = _root(one.covariance)
    shared = np.linalg.eigvalsh(root @ other.covariance @ root)
    traces = np.trace(one.covariance) + np.trace(other.covariance)
    gap = float(((one.mean - other.mean) ** 2).sum())
    # Rounding may take an eigenvalue of zero, or a distance of zero, below it.
    return max(0.0, gap + float(traces - 2 * np.sqrt(np.maximum(shared, 0)).sum()))


def _root(covariance: Floats) -> Floats:
    values, vectors = np.linalg.eigh(covariance)
    found: Floats = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
    return found


_DEEP = 4  # a candidate counts as deep from a quarter of the largest possible depth on


@dataclass(frozen=True)
class DepthQuality:
    """Means over documents.

    Attributes:
        deepest: the depth of the deepest candidate, as a share of the number of sentences.
        deep: the number of candidates whose depth is at least an eighth of the number of sentences,
            a quarter of the largest possible depth.
    """

    deepest: float
    deep: float


def depth_quality(
    sentences: npt.NDArray[np.float64],
    candidates: npt.NDArray[np.float64],
    offsets: npt.NDArray[np.int64],
    first: int,
    directions: npt.NDArray[np.float64],
) -> DepthQuality:
    """Measure the quality for the documents from number `first` on.

    Args:
        sentences: (total, h), whole numbers.
        candidates: (m, h), whole numbers.
        offsets: int64 (n + 1,), where each document's sentences begin.
        first: the first document that is measured.
        directions: (p, h), whole numbers.
    """
    some = offsets[first:]
    depths = Depths(project(candidates, directions), Utility.DEPTH)
    projected = project(sentences[some[0] : some[-1]], directions)
    found = depths.utilities(projected, some - some[0])
    lengths = np.diff(some)
    deep = found * 2 * _DEEP >= lengths[:, None]
    return DepthQuality(float((found.max(axis=1) / lengths).mean()), float(deep.sum(axis=1).mean()))
