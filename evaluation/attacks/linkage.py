"""Linkage of a released document to the one of n original documents that it comes from.

The attacker holds the n originals and names the one of the highest score; row i of the release
comes from row i of the originals. Scores are functions of the numbers of released documents, so
that n^2 scores are never held at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.spatial.distance import cdist

from quietcorpus.compiled import compiled

_ROWS_AT_ONCE = 256
_DIGITS = 9
_SCALINGS = 30
_LARGEST_LOG, _LEAST_CHANCE, _ALIKE = 1e12, 1e-300, 1e-9
_OFF = 0.1
_SILENT = 1e-4
_RIDGE, _LEAST_OFF = 0.1, 0.05
_DRAWN_IN, _SHARPNESS = (0.1, 0.3, 0.03, 0.01), (1.0, 0.7, 0.5, 0.3)
_TRIES, _TRIED_ON = 3, 500  # simulated releases, and documents, by which these are chosen

Score = Callable[[npt.NDArray[np.int64]], npt.NDArray[np.float64]]
"""A function from released documents, int64 (b,), to scores of all originals, float64 (b, n)."""


def linked(score: Score, n: int, top: int = 1) -> npt.NDArray[np.float64]:
    """Compute the chance that each released document's own original is among the `top` by score.

    Returns float64 (n,); the mean is the share linked. Originals of equal scores count as in random
    order: a tie of three for the first place is a chance of 1/3. A release that tells nothing gives
    top / n.

    Raises:
        ValueError: fewer than two documents.
    """
    _refuse_few(n)
    chances = np.empty(n)
    for start in range(0, n, _ROWS_AT_ONCE):
        numbers = np.arange(start, min(start + _ROWS_AT_ONCE, n))
        scores = score(numbers)
        own = scores[np.arange(len(numbers)), numbers][:, None]
        better, tied = (scores > own).sum(axis=1), (scores == own).sum(axis=1)
        chances[numbers] = np.clip((top - better) / tied, 0, 1)
    return chances


def linked_together(logs: Score, n: int) -> npt.NDArray[np.float64]:
    """Compute the chance that each document is linked if all rows are looked at together: (n,).

    Each original has one row, so that what another row is likely to be of is no longer likely here.
    Probabilities are scaled until rows and originals both add up to one (Sinkhorn 1964), which
    approximates the chance of each pair over all one-to-one assignments; the attacker then names
    the likeliest original of each row. That finds more than the likeliest assignment as a whole.

    Args:
        logs: scores that are logarithms of probabilities, up to a constant for each row.
        n: the number of documents; all n^2 scores are held at once.

    Raises:
        ValueError: fewer than two documents.
    """
    _refuse_few(n)
    chances = np.empty((n, n))
    for start in range(0, n, _ROWS_AT_ONCE):
        numbers = np.arange(start, min(start + _ROWS_AT_ONCE, n))
        chances[numbers] = np.clip(logs(numbers), -_LARGEST_LOG, _LARGEST_LOG)
    for axis in (1, 0):
        chances -= chances.max(axis=axis, keepdims=True)
    np.exp(chances, out=chances)
    for _ in range(_SCALINGS):
        for axis in (0, 1):
            chances /= np.maximum(chances.sum(axis=axis, keepdims=True), _LEAST_CHANCE)
    own = np.diagonal(chances)[:, None]
    better = (chances > own * (1 + _ALIKE)).sum(axis=1)
    tied = (chances >= own * (1 - _ALIKE)).sum(axis=1) - better
    return np.where(better == 0, 1 / tied, 0.0)


def agreeing(score: Score, known: npt.NDArray[Any], others: npt.NDArray[Any]) -> Score:
    """Rule out whatever differs in the columns that a release keeps as they are.

    Args:
        score: a score of n others for each number.
        known: (n,), equal for numbers whose kept columns agree.
        others: (n,), the same of the others.
    """
    return lambda numbers: np.where(known[numbers, None] == others, score(numbers), -np.inf)


def of_all(scores: npt.NDArray[np.float64]) -> Score:
    """Return scores (n, n) as a function of the rows asked for; they are held in float32."""
    held = scores.astype(np.float32)
    return lambda numbers: held[numbers].astype(np.float64)


def _refuse_few(n: int) -> None:
    if n < 2:
        raise ValueError(f"{n} documents cannot be mistaken for each other; give two or more")


def bag_distances(released: sp.csr_array, original: sp.csr_array) -> Score:
    """Score by minus the L1 distance, the best score for counts under two-sided geometric noise.

    With a = exp(-rate), Pr[x + Z = r] = (1 - a) / (1 + a) a^|r - x|, so the log-likelihood of an
    original is -rate ||r - x||_1 plus a term of r alone. Clipping at zero changes only that term:
    Pr[x + Z <= 0] = a^x / (1 + a), as if the output were zero itself. Under a uniform prior, the
    likeliest original is the Bayes guess, whatever the rate.

    Args:
        released: integers (n, K), the noisy counts of bins, clipped or not.
        original: non-negative integers (n, K), the true ones.

    Raises:
        ValueError: the shapes differ.
    """
    _check(released.shape, original.shape)
    noisy, true = (bags.astype(np.int64) for bags in (released, original))
    for bags in (noisy, true):
        bags.sum_duplicates()

    def score(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        r, x = noisy[numbers], true
        far = np.empty((len(numbers), x.shape[0]))
        _far(r.indptr, r.indices, r.data, x.indptr, x.indices, x.data, x.shape[1], far)
        return -far

    return score


@compiled
def _far(offsets, entries, counts, own_offsets, own_entries, own_counts, size, out):  # type: ignore[no-untyped-def]
    """Write the L1 distances between sparse rows of `size` columns to `out`, float64 (b, n)."""
    # Each original visits only its own entries: those of the released row alone are in `total`.
    row = np.zeros(size, dtype=np.int64)
    for i in range(len(offsets) - 1):
        total = np.int64(0)
        for j in range(offsets[i], offsets[i + 1]):
            row[entries[j]] = counts[j]
            total += abs(counts[j])
        for document in range(len(own_offsets) - 1):
            far = total
            for j in range(own_offsets[document], own_offsets[document + 1]):
                released = row[own_entries[j]]
                far += abs(released - own_counts[j]) - abs(released)
            out[i, document] = far
        for j in range(offsets[i], offsets[i + 1]):
            row[entries[j]] = 0


def in_bins(counts: sp.csr_array, bins: npt.NDArray[np.int32], size: int) -> sp.csr_array:
    """Sum counts of terms (n, V) over their bins, int32 (V,) of 0 .. size - 1: (n, size).

    Decompression keeps the total of every bin, so this recovers the released bins.
    """
    places = np.arange(len(bins)), bins
    ones = np.ones(len(bins), dtype=counts.dtype)
    return (counts @ sp.csr_array((ones, places), shape=(len(bins), size))).tocsr()


def in_terms(
    counts: sp.csr_array,
    bins: npt.NDArray[np.int32],
    weights: npt.NDArray[np.floating],
    generator: np.random.Generator,
) -> sp.csr_array:
    """Spread counts of bins (n, K) at random over their terms: (n, V), as decompression does.

    Args:
        counts: whole numbers, not negative.
        bins: the bin of each term, int32 (V,).
        weights: of the terms within their bins, (V,), not negative; a bin of zeros is even.
        generator: the generator of the spread.
    """
    totals = np.bincount(bins, weights, counts.shape[1])
    weights = np.where(totals[bins] > 0, weights, 1.0)
    order = np.argsort(bins, kind="stable")
    ends = np.cumsum(weights[order])
    last = np.searchsorted(bins[order], np.arange(counts.shape[1]), side="right") - 1
    stops = ends[last]
    starts = np.concatenate([[0.0], stops[:-1]])
    cells = counts.tocoo()
    of = np.repeat(np.arange(len(cells.data)), cells.data.astype(np.int64))
    rows, own = cells.coords[0][of], cells.coords[1][of]
    places = starts[own] + generator.random(len(own)) * (stops - starts)[own]
    found = np.minimum(np.searchsorted(ends, places, side="right"), last[own])
    shape = counts.shape[0], len(bins)
    return sp.coo_array((np.ones(len(own), np.int64), (rows, order[found])), shape).tocsr()


def bag_cosines(released: sp.csr_array, original: sp.csr_array) -> Score:
    """Score by cosines of counts times their terms' inverse document frequencies.

    These are log((1 + n) / (1 + documents with the term)) + 1, of the originals. A document without
    a term has a cosine of zero with all.

    Args:
        released, original: non-negative counts of terms or bins, (n, V).

    Raises:
        ValueError: the shapes differ.
    """
    _check(released.shape, original.shape)
    rarity = np.log((1 + original.shape[0]) / (1 + (original > 0).sum(axis=0))) + 1
    left, right = (_unit_bags(bags * rarity) for bags in (released, original))

    def score(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        return _rounded((left[numbers] @ right.T).toarray())

    return score


def cosines(released: npt.NDArray[np.floating], original: npt.NDArray[np.floating]) -> Score:
    """Score by cosines of embeddings (n, d); a zero vector has a cosine of zero with all.

    Raises:
        ValueError: the shapes differ.
    """
    _check(released.shape, original.shape)
    left, right = (_unit(vectors.astype(np.float64)) for vectors in (released, original))

    def score(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        return _rounded(left[numbers] @ right.T)

    return score


def noisy_means(
    released: npt.NDArray[np.floating],
    sums: npt.NDArray[np.int64],
    lengths: npt.NDArray[np.int64],
    rate: float,
    norm: Literal["cityblock", "euclidean"],
    blank: float = 0,
) -> Score:
    """Score by the log-probability of means of noisy sums, under noise of mass exp(-rate ||z||).

    A document of n sentences of sum S is released as r = (S + z) / n, where S and z are whole
    numbers. So n r is whole, which excludes nearly all documents of other lengths, and the
    log-probability of r is -rate ||n r - S|| plus a constant. Under a uniform prior, the likeliest
    original is the Bayes guess.

    Args:
        released: the noisy means, (n, d); rounding may have moved n r by less than `_OFF`.
        sums: the exact sums of the originals, (n, d).
        lengths: the numbers of their sentences, (n,).
        rate: of the noise.
        norm: of the noise.
        blank: each value of the row of a document without sentences.

    Raises:
        ValueError: the shapes differ.
    """
    _check(released.shape, sums.shape)
    silent = np.abs(released - blank).max(axis=1, initial=0) < _SILENT
    alike = [(n, np.flatnonzero(lengths == n)) for n in np.unique(lengths)]

    def score(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        scores = np.full((len(numbers), len(sums)), -np.inf)
        for length, own in alike:
            if length == 0:
                scores[:, own] = np.where(silent[numbers], np.inf, -np.inf)[:, None]
                continue
            noisy = released[numbers] * length
            whole = np.rint(noisy)
            rows = np.flatnonzero((np.abs(noisy - whole) < _OFF).all(axis=1))
            scores[np.ix_(rows, own)] = -rate * cdist(whole[rows], sums[own], norm)
        return _rounded(scores)

    return score


def by_simulations(
    released: npt.NDArray[np.float64],
    simulated: npt.NDArray[np.float64],
    originals: npt.NDArray[np.float64],
    sizes: npt.NDArray[np.int64],
) -> Score:
    """Score by normal densities, whose means are found from releases that the attacker draws.

    The attack models a row as the mean of independent parts, with one covariance over their number,
    estimated from the differences between simulated releases of one original. Where few are drawn,
    their mean is shrunk towards the prediction of ridge regression from the original: by both
    variances, in every principal direction of what whitened means leave of it. How much the
    covariance is drawn in, and how sharp the densities are, is chosen by the links of simulated
    releases that stand for the released one, each with the others.

    Args:
        released: the rows, (n, d).
        simulated: releases of each original, two or more, (K, n, d).
        originals: features of the originals, (n, p).
        sizes: the number of parts of each original's rows, (n,).
    """
    count, few = len(simulated), slice(0, _TRIED_ON)
    tries = min(_TRIES, count - 2)
    known = simulated[:, few], originals[few], sizes[few]
    n = len(known[1])

    def held_out(drawn_in: float) -> list[Score]:
        others = [np.delete(known[0], turn, axis=0) for turn in range(tries)]
        return [
            _by_normals(known[0][turn], other, *known[1:], drawn_in)
            for turn, other in enumerate(others)
        ]

    if tries < 1 or n < 2:
        return _by_normals(released, simulated, originals, sizes, _DRAWN_IN[0])
    tried = {part: held_out(part) for part in _DRAWN_IN}
    part = max(tried, key=lambda own: sum(linked(one, n).sum() for one in tried[own]))
    sharpness = max(
        _SHARPNESS,
        key=lambda by: sum(linked_together(_sharpened(one, by), n).sum() for one in tried[part]),
    )
    return _sharpened(_by_normals(released, simulated, originals, sizes, part), sharpness)


def _sharpened(score: Score, by: float) -> Score:
    return lambda numbers: by * score(numbers)


def _by_normals(
    released: npt.NDArray[np.float64],
    simulated: npt.NDArray[np.float64],
    originals: npt.NDArray[np.float64],
    sizes: npt.NDArray[np.int64],
    drawn_in: float,
) -> Score:
    """Score as `by_simulations`, with a covariance that is drawn in by a given part."""
    count, weights = len(simulated), np.maximum(sizes, 1).astype(np.float64)
    middle = simulated.mean(axis=0)
    apart = ((simulated - middle) * np.sqrt(weights * count / (count - 1))[:, None]).reshape(
        -1, released.shape[1]
    )
    whiten = _whitening(apart.T @ apart / len(apart), drawn_in)
    centre = middle.mean(axis=0)
    means, rows = (middle - centre) @ whiten, (released - centre) @ whiten
    expected = _regressed(originals, means, weights)
    off = means - expected
    turn = np.linalg.eigh(off.T @ off)[1]
    expected, off, rows = expected @ turn, off @ turn, rows @ turn
    own = 1 / (count * weights)[:, None]  # the variance of a mean of simulated rows
    least = _LEAST_OFF / weights.mean()
    variances = np.maximum((off**2).mean(axis=0) - own.mean(), least)
    share = variances / (variances + own)
    means, spread = expected + share * off, share * own + 1 / weights[:, None]
    inverse = 1 / spread
    constants = (means**2 * inverse + np.log(spread)).sum(axis=1)

    def score(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        some = rows[numbers]
        squares = some**2 @ inverse.T - 2 * some @ (means * inverse).T
        return _rounded(-(squares + constants) / 2)

    return score


def _whitening(covariance: npt.NDArray[np.float64], drawn_in: float) -> npt.NDArray[np.float64]:
    """Return W, (d, d), for which vectors v W have no covariance, of one that is drawn in."""
    level = max(float(np.trace(covariance)) / len(covariance), _LEAST_CHANCE)
    values, turn = np.linalg.eigh(
        (1 - drawn_in) * covariance + drawn_in * level * np.eye(len(covariance))
    )
    found: npt.NDArray[np.float64] = turn / np.sqrt(values)
    return found


def _regressed(
    features: npt.NDArray[np.float64],
    values: npt.NDArray[np.float64],
    weights: npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]:
    """Return what weighted ridge regression on features (n, p) expects of values (n, d)."""
    known = np.column_stack([features - features.mean(axis=0), np.ones(len(features))])
    weighted = known * weights[:, None]
    gram = weighted.T @ known
    gram += (_RIDGE * np.trace(gram) / len(gram) + _LEAST_CHANCE) * np.eye(len(gram))
    found: npt.NDArray[np.float64] = known @ np.linalg.solve(gram, weighted.T @ values)
    return found


def _unit(vectors: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1)


def _unit_bags(bags: sp.csr_array) -> sp.csr_array:
    lengths = np.sqrt((bags * bags).sum(axis=1))
    return sp.diags_array(1 / np.where(lengths > 0, lengths, 1)) @ bags.tocsr()


def _rounded(scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Round scores so that equal documents tie, in whatever order a product adds them up."""
    return np.round(scores, _DIGITS)


def _check(released: tuple[int, ...], original: tuple[int, ...]) -> None:
    if released != original:
        raise ValueError(
            f"released documents have shape {released} and originals {original}; give both in one "
            "order, a document a row, over the same columns"
        )
