"""The changes that a word-by-word release made, from the words before and after.

N_w and S_w of Feyisetan, Balle, Diethe and Drake (PrivateNLP 2020), section 3, are measured as they
turned out; `quietcorpus.evaluation.calibration` estimates them before a run.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from .calibration import held_draws

Words = npt.NDArray[np.integer]
"""Numbers of words, (tokens,)."""


class WordChanges(NamedTuple):
    """The outcomes of m words, int64 (m,) each.

    words: the numbers, ascending.
    occurrences: the number of times that each stood in the corpus.
    unchanged: the number of these that were released as the word itself; their share is N_w as
        observed.
    set_size: S_w as observed, the least number of outputs that hold a share of 1 - eta of the
        occurrences. It is at most their number, so that it is low for rare words.
    """

    words: npt.NDArray[np.int64]
    occurrences: npt.NDArray[np.int64]
    unchanged: npt.NDArray[np.int64]
    set_size: npt.NDArray[np.int64]

    @property
    def unchanged_share(self) -> npt.NDArray[np.float64]:
        """Return N_w as observed, float64 (m,)."""
        return self.unchanged / self.occurrences


def unchanged_share(before: Words, after: Words) -> float:
    """Compute the share of all tokens that were released unchanged; NaN if there are none.

    Raises:
        ValueError: not as many words after as before.
    """
    _check(before, after)
    return float(np.mean(before == after)) if len(before) else float("nan")


def word_changes(before: Words, after: Words, least: int, eta: Fraction) -> WordChanges:
    """Measure the outcomes of each word that stands in the corpus `least` times or more.

    Args:
        before, after: words and their releases, in the same order, int (tokens,).
        least: 1 or more.
        eta: the share of the occurrences that a word's set of outputs may leave out.

    Raises:
        ValueError: not as many words after as before, `least` or `eta` out of range.
    """
    _check(before, after)
    if least < 1:
        raise ValueError(f"the least number of occurrences is {least}; name 1 or more")
    words, sources, occurrences = np.unique(before, return_inverse=True, return_counts=True)
    outputs, targets = np.unique(after, return_inverse=True)
    pairs, counts = np.unique(sources * len(outputs) + targets, return_counts=True)
    owner = pairs // max(1, len(outputs))
    unchanged = np.bincount(sources[before == after], minlength=len(words))
    held = np.array([held_draws(int(n), eta) for n in occurrences], dtype=np.int64)
    kept = occurrences >= least
    found = (words, occurrences, unchanged, _set_sizes(owner, counts, occurrences, held))
    return WordChanges(*(values[kept].astype(np.int64) for values in found))


def _set_sizes(
    owner: npt.NDArray[np.int64],
    counts: npt.NDArray[np.int64],
    occurrences: npt.NDArray[np.int64],
    held: npt.NDArray[np.int64],
) -> npt.NDArray[np.int64]:
    """Count the most frequent outputs of each word that together hold `held` of its occurrences."""
    order = np.lexsort((-counts, owner))
    owner, counts = owner[order], counts[order]
    words_before = np.cumsum(occurrences) - occurrences
    held_before = np.cumsum(counts) - counts - words_before[owner]
    return np.bincount(owner[held_before < held[owner]], minlength=len(held))


def semantic_similarity(
    before: Words,
    after: Words,
    offsets: npt.NDArray[np.int64],
    vectors: npt.NDArray[np.floating],
) -> npt.NDArray[np.float64]:
    """Compute the cosine of the mean vectors of each document's words, before and after.

    Args:
        before, after: words and their releases, in the same order, int (tokens,).
        offsets: int64 (n + 1,); document i holds the tokens from offsets[i] to offsets[i + 1].
        vectors: float (V, d), of every word.

    Returns:
        float64 (n,); NaN where a mean is the zero vector or there are no words.

    Raises:
        ValueError: not as many words after as before, or a word without a vector.
    """
    _check(before, after)
    for words in (before, after):
        if len(words) and not 0 <= words.min() <= words.max() < len(vectors):
            raise ValueError(f"a word is not one of 0 to {len(vectors) - 1}; leave it out")
    one, other = (_sums(words, offsets, vectors) for words in (before, after))
    products = (one * other).sum(axis=1)
    lengths = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
    cosines: npt.NDArray[np.float64] = products / np.where(lengths > 0, lengths, np.nan)
    return cosines


def _sums(
    words: Words, offsets: npt.NDArray[np.int64], vectors: npt.NDArray[np.floating]
) -> npt.NDArray[np.float64]:
    # Sums and means have the same cosine.
    ones = np.ones(len(words), dtype=vectors.dtype)
    chosen = sp.csr_array((ones, words, offsets), shape=(len(offsets) - 1, len(vectors)))
    return np.asarray(chosen @ vectors, dtype=np.float64)


def _check(before: Words, after: Words) -> None:
    if len(before) != len(after):
        raise ValueError(
            f"{len(before)} words before and {len(after)} after; give the pairs that were released"
        )
