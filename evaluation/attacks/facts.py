"""Search for a document's released row by a few facts: some of its sentences, or its rare words.

The attacker does not hold the document, and has all released rows. It ranks them for its facts by
Okapi BM25 (Robertson and Zaragoza 2009) over words or bins, or by cosines of embeddings
(`quietcorpus.evaluation.attacks.linkage.cosines`).
"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from quietcorpus.evaluation.attacks.linkage import Score
from quietcorpus.indexes.recoder import means

_SATURATION, _LENGTHS = 1.2, 0.75
_LEAST_WORDS = 5
_ENDS = ".!?\u2026\u3002\uff01\uff1f\u061f\u0964"  # the last are full-width, Arabic and Devanagari
_SENTENCE = re.compile(rf"[^{_ENDS}\n]+[{_ENDS}]*")


def by_bm25(facts: sp.csr_array, rows: sp.csr_array) -> Score:
    """Score released rows by BM25; a fact counts as often as the attacker knows it.

    Args:
        facts: non-negative (n, V), the terms that are known of each document.
        rows: non-negative counts (n, V) of the released rows; row i is of document i.

    Returns:
        A function from documents, int64 (b,), to scores of all rows, float64 (b, n). Rows of equal
        scores tie, so that a document of no facts has its row found with a chance of 1 / n.
    """
    count = rows.shape[0]
    counts = rows.astype(np.float64)
    lengths = np.asarray(counts.sum(axis=1)).ravel()
    frequencies = np.bincount(counts.indices[counts.data > 0], minlength=rows.shape[1])
    rarity = np.log1p((count - frequencies + 0.5) / (frequencies + 0.5))
    relative = lengths / max(lengths.mean(), 1e-12)
    slowed = np.repeat(_SATURATION * (1 - _LENGTHS + _LENGTHS * relative), np.diff(counts.indptr))
    weights = counts.copy()
    weights.data = counts.data * (_SATURATION + 1) / (counts.data + slowed)
    weights = (weights * rarity).tocsr().T.tocsr()  # once, and not in each product

    def score(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        found: npt.NDArray[np.float64] = np.round((facts[numbers] @ weights).toarray(), 9)
        return found

    return score


def rare_terms(counts: sp.csr_array, most: int) -> sp.csr_array:
    """Return the `most` terms of each document that the fewest documents have, each once: (n, V).

    Of equally rare ones, the first are taken.
    """
    frequencies = np.bincount(counts.indices[counts.data > 0], minlength=counts.shape[1])
    chosen, offsets = [], [0]
    for start, end in zip(counts.indptr, counts.indptr[1:], strict=False):
        terms = np.sort(counts.indices[start:end][counts.data[start:end] > 0])
        chosen.append(terms[np.argsort(frequencies[terms], kind="stable")[:most]])
        offsets.append(offsets[-1] + len(chosen[-1]))
    terms = np.concatenate(chosen)
    return sp.csr_array((np.ones(len(terms)), terms, np.array(offsets)), counts.shape)


def some_sentences(texts: list[str], most: int, generator: np.random.Generator) -> list[str]:
    """Return, of each text, `most` of its sentences at random, or all if it has fewer.

    A sentence ends at a line's end or at one of `.!?` and their like in other scripts. Those of
    fewer than five words are taken only where there are no others.
    """
    known = []
    for text in texts:
        sentences = [one.strip() for one in _SENTENCE.findall(text)]
        long = [one for one in sentences if len(one.split()) >= _LEAST_WORDS] or sentences
        taken = generator.permutation(len(long))[:most]
        known.append(" ".join(long[place] for place in taken))
    return known


def some_means(
    vectors: npt.NDArray[np.floating],
    offsets: npt.NDArray[np.int64],
    most: int,
    generator: np.random.Generator,
) -> npt.NDArray[np.float64]:
    """Compute the mean of `most` vectors of each document, at random, or of all: float64 (n, d).

    Args:
        vectors: (m, d), of all documents' sentences, document by document.
        offsets: int64 (n + 1,); document i has vectors[offsets[i]:offsets[i + 1]].
        most: the largest number of vectors of a document.
        generator: the generator of the choice.
    """
    taken = [generator.permutation(size)[:most] for size in np.diff(offsets)]
    sizes = [len(places) for places in taken]
    places = np.repeat(offsets[:-1], sizes) + np.concatenate(taken)
    return means(vectors[places], np.cumsum([0, *sizes]))
