"""Linkage of, and search for, text released word by word, by the law of the words.

Linkage of text released word by word, by the law of the words.

A released text is as long as its original, so only originals of its length come into question. The
attacker holds them, and knows the mechanism's law: the logarithm of an original's probability is
the sum, over its places, of log P(released word | original word). With all originals equally
likely, the likeliest is the best guess of one row.

A place at which the release draws a uniform word, since the index lacks the original's, has the
probability 1 / V.

Search for a released text by a few facts of its original, by the law of the words.

A sentence stands in a released text place by place, at a place that the attacker does not know. So
the ratio of a text's chance with the sentence and without is, over all places, the mean of

    product over the sentence's words of P(released word | word) / P(released word),

where the lower chance is that under words as they are frequent in all originals. A word alone is a
sentence of one word. Sentences are taken for independent, and their ratios multiplied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from quietcorpus.compiled import compiled

from .linkage import Score
from .word_laws import Floats, Ids, Law, PointNoise, Points

_OUTPUTS_AT_ONCE = 64
_LEAST = 1e-300
_TOGETHER = 1.25

LawOf = Callable[[float], Law]
"""A function of a document's length that returns the law of its words."""


@dataclass(frozen=True)
class Originals:
    """The documents that an attacker holds, as words.

    Attributes:
        offsets: int64 (n + 1,); document i has the words offsets[i] .. offsets[i + 1].
        words: int (tokens,), 0 .. V - 1; or -1 for a word that the index lacks.
    """

    offsets: Ids
    words: npt.NDArray[np.integer]

    @cached_property
    def lengths(self) -> Ids:
        """Return the lengths of documents, int64 (n,)."""
        return np.diff(self.offsets)

    @cached_property
    def secrets(self) -> Ids:
        """Return the distinct words, int64 (m,), ascending."""
        return np.unique(self.words[self.words >= 0]).astype(np.int64)

    @cached_property
    def frequencies(self) -> Floats:
        """Return how frequent each of them is, float64 (m,)."""
        known = self.words[self.words >= 0]
        counts = np.bincount(np.searchsorted(self.secrets, known), minlength=len(self.secrets))
        found: Floats = counts / max(1, len(known))
        return found

    @cached_property
    def columns(self) -> Ids:
        """Return the place of each token among the secrets, int64 (tokens,), or their number."""
        return self.columns_of(self.words)

    def columns_of(self, words: npt.NDArray[np.integer]) -> Ids:
        """Return the place of each word among the secrets, or their number for any other word."""
        places = np.searchsorted(self.secrets, words)
        held = self.secrets[np.minimum(places, len(self.secrets) - 1)] == words
        return np.where(held, places, len(self.secrets))

    def alike(self) -> list[Ids]:
        """Return the numbers of the documents of each length, from 1 on."""
        found = [np.flatnonzero(self.lengths == length) for length in np.unique(self.lengths)]
        return [members for members in found if self.lengths[members[0]]]

    def tokens(self, members: Ids) -> Ids:
        """Return the tokens of documents of one length, int64 (documents, length)."""
        places: Ids = self.offsets[members][:, None] + np.arange(self.lengths[members[0]])
        return places


def classes(originals: Originals, *, shared: bool) -> list[tuple[float, list[Ids]]]:
    """Return documents by length, in classes for which one law does, with the mean length of each.

    Where the words of a document share epsilon, lengths that differ by less than a quarter have one
    law; else all have the same.
    """
    found: list[tuple[float, list[Ids]]] = []
    least = 0.0
    for members in originals.alike():
        length = float(originals.lengths[members[0]])
        if not found or (shared and length > _TOGETHER * least):
            found.append((length, []))
            least = length
        found[-1][1].append(members)
    return [
        (float(originals.lengths[np.concatenate(groups)].mean()), groups) for _, groups in found
    ]


def by_likelihood(originals: Originals, released: Ids, law_of: LawOf, *, shared: bool) -> Score:
    """Score originals by the logarithm of the probability of the released words.

    Args:
        originals: the documents, whose words are the secrets of the laws.
        released: int64 (tokens,), the released words, place by place.
        law_of: the law of a document's words, by its length.
        shared: whether a document's words share epsilon.
    """
    blocks = []
    for length, groups in classes(originals, shared=shared):
        law = law_of(length)
        tokens = [originals.tokens(members) for members in groups]
        outputs = np.unique(released[np.concatenate([own.ravel() for own in tokens])])
        sums = [np.zeros((len(own), len(own))) for own in tokens]
        for start in range(0, len(outputs), _OUTPUTS_AT_ONCE):
            some = outputs[start : start + _OUTPUTS_AT_ONCE]
            logs = np.empty((len(some), len(originals.secrets) + 1))
            logs[:, :-1] = np.log(np.maximum(law.scaled(some), _LEAST))
            logs[:, -1] = -np.log(law.size)
            for own, total in zip(tokens, sums, strict=True):
                rows = np.searchsorted(some, released[own])
                inside = some[np.minimum(rows, len(some) - 1)] == released[own]
                if inside.any():
                    rows[~inside] = -1
                    _add(logs, rows, originals.columns[own], total)
        blocks += list(zip(groups, sums, strict=True))
    return _of_blocks(originals, blocks)


def by_points(
    originals: Originals, points: Points, noise_of: Callable[[float], PointNoise], *, shared: bool
) -> Score:
    """Score originals by the density of noisy points: the attacker who sees what is searched for.

    No attacker on the released words links more on average, since they follow from the points. A
    word that the index lacks has no point: the attacker sees where such words were, which released
    words may tell, since their law is uniform there alone. `noise_of` is the mechanism for a
    document's length, whose secrets are those of `originals`.
    """
    blocks = []
    for length, groups in classes(originals, shared=shared):
        noise = noise_of(length)
        for members in groups:
            own = originals.tokens(members)
            total = np.zeros((len(own), len(own)))
            for places in own.T:
                logs = noise.log_densities(points[places]).astype(np.float64)
                columns = originals.columns[places]
                known = columns < logs.shape[1]
                seen = np.where(known, logs[:, np.where(known, columns, 0)], 0.0)
                total += np.where(known[:, None] == known, seen, -np.inf)
            blocks.append((members, total))
    return _of_blocks(originals, blocks)


def _of_blocks(originals: Originals, blocks: list[tuple[Ids, Floats]]) -> Score:
    """Return the score by blocks of documents of one length: of no others is a row."""
    count = len(originals.lengths)
    block_of, row_of = np.full(count, -1), np.zeros(count, dtype=np.int64)
    for number, (members, _) in enumerate(blocks):
        block_of[members], row_of[members] = number, np.arange(len(members))
    empty = np.flatnonzero(block_of < 0)

    def score(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        scores = np.full((len(numbers), count), -np.inf)
        for row, number in enumerate(numbers.tolist()):
            if block_of[number] < 0:
                scores[row, empty] = 0.0
            else:
                members, sums = blocks[block_of[number]]
                scores[row, members] = np.round(sums[row_of[number]], 9)
        return scores

    return score


@compiled
def _add(logs, rows, columns, total):  # type: ignore[no-untyped-def]
    """Add the logarithms of released words, by their rows or -1, under each original's words."""
    for released in range(rows.shape[0]):
        for place in range(rows.shape[1]):
            row = rows[released, place]
            if row >= 0:
                for original in range(rows.shape[0]):
                    total[released, original] += logs[row, columns[original, place]]


Matrix = npt.NDArray[np.float32]

MOST_CELLS = 1 << 28
"""The most logarithms of words under words that are held: a gigabyte."""
_STEPS, _FEWEST = 1 << 30, 50
_LEAST_CHANCE, _NONE = 1e-30, -100.0


class Found(NamedTuple):
    """The fit of released texts to facts.

    Attributes:
        words: float32 (m, n), the log-ratio of each secret's occurring once in each text.
        sentences: of the first sentences of each document, by how many: float32 (n, n).
    """

    words: Matrix
    sentences: dict[int, Matrix]

    def of_terms(self, terms: sp.csr_array, secrets: Ids) -> Score:
        """Score released texts by words that are known of each document, (n, V)."""
        known = terms[:, secrets]
        return lambda numbers: np.round(known[numbers] @ self.words.astype(np.float64), 9)


def by_facts(
    originals: Originals,
    released: Ids,
    law_of: LawOf,
    known: Sequence[Sequence[npt.NDArray[np.integer]]],
    sizes: Sequence[int],
    *,
    shared: bool,
) -> Found | None:
    """Score all released texts by sentences of each document, and by single words.

    Sentences are tried in the texts that their words by themselves fit best, as many as there is
    time for; the others have the least ratio that was found.

    Args:
        originals, released, law_of, shared: as for `by_likelihood`.
        known: some sentences of each document, as words; -1 for one that the index lacks.
        sizes: of how many of these, the first ones, an attacker knows.

    Returns:
        None where words under words would not fit into memory.
    """
    count, secrets = len(originals.lengths), originals.secrets
    if len(np.unique(released)) * len(secrets) > MOST_CELLS:
        return None
    facts = {size: _joined([own[:size] for own in known], originals) for size in sizes}
    steps = sum(len(columns) for columns, *_ in facts.values()) * len(released)
    share = min(1.0, _STEPS / max(1, steps))
    words = np.zeros((len(secrets), count), dtype=np.float32)
    found = {size: np.zeros((count, count), dtype=np.float32) for size in sizes}
    for length, groups in classes(originals, shared=shared):
        rows = np.sort(np.concatenate(groups))
        starts = np.concatenate([[0], np.cumsum(originals.lengths[rows])])
        tokens = np.arange(starts[-1]) + np.repeat(
            originals.offsets[rows] - starts[:-1], originals.lengths[rows]
        )
        outputs, places = np.unique(released[tokens], return_inverse=True)
        logs = _log_ratios(law_of(length), outputs, originals)
        occur = np.zeros((len(logs), len(rows)), dtype=np.float32)
        _occur(logs, places, starts, occur)
        words[:, rows] = occur[:-1]
        most = max(min(_FEWEST, len(rows)), round(share * len(rows)))
        for size, own in facts.items():
            fit = np.empty((count, len(rows)), dtype=np.float32)
            _scan(logs, places, starts, *own, occur, most, fit)
            found[size][:, rows] = fit
    return Found(words, found)


def _joined(
    known: Sequence[Sequence[npt.NDArray[np.integer]]], originals: Originals
) -> tuple[Ids, Ids, Ids]:
    """Join documents' sentences: their words' columns, sentences' and documents' ends, from 0."""
    sentences = [np.asarray(one, np.int64) for own in known for one in own]
    columns = originals.columns_of(np.concatenate([*sentences, np.zeros(0, np.int64)]))
    return columns, np.cumsum([0, *map(len, sentences)]), np.cumsum([0, *map(len, known)])


def _log_ratios(law: Law, outputs: Ids, originals: Originals) -> Matrix:
    """Return log P(output | word) / P(output), and zeros for an unknown word: (m + 1, outputs)."""
    logs = np.zeros((len(originals.secrets) + 1, len(outputs)), dtype=np.float32)
    for start in range(0, len(outputs), _OUTPUTS_AT_ONCE):
        some = slice(start, start + _OUTPUTS_AT_ONCE)
        chances = law.chances(outputs[some])
        chances = chances / (chances @ originals.frequencies)[:, None]
        logs[:-1, some] = np.log(np.maximum(chances, _LEAST_CHANCE)).T
    return logs


@compiled
def _occur(logs, places, starts, out):  # type: ignore[no-untyped-def]
    """Write the logarithm of each word's mean ratio over the places of each text to `out`."""
    for word in range(out.shape[0]):
        ratios = np.exp(logs[word])
        for row in range(out.shape[1]):
            total = np.float32(0)
            for place in range(starts[row], starts[row + 1]):
                total += ratios[places[place]]
            size = starts[row + 1] - starts[row]
            out[word, row] = np.log(max(total, np.float32(_LEAST_CHANCE)) / size)


@compiled
def _scan(logs, places, starts, columns, ends, of, occur, most, out):  # type: ignore[no-untyped-def]
    """Write the logarithm of the mean ratio over places, summed over the sentences, to `out`."""
    turned = np.empty(np.max(starts[1:] - starts[:-1]), dtype=np.float32)
    for document in range(len(of) - 1):
        by_words = np.zeros(out.shape[1])
        for k in range(ends[of[document]], ends[of[document + 1]]):
            by_words += occur[columns[k]]
        chosen = np.argsort(-by_words)[:most]
        sums = np.zeros(len(chosen))
        for number, row in enumerate(chosen):
            for sentence in range(of[document], of[document + 1]):
                first, size = ends[sentence], ends[sentence + 1] - ends[sentence]
                turns = starts[row + 1] - starts[row] - size + 1
                if size == 0:
                    continue
                if turns <= 0:
                    sums[number] += _NONE
                    continue
                turned[:turns] = 0
                for k in range(size):
                    own, begin = logs[columns[first + k]], starts[row] + k
                    for turn in range(turns):
                        turned[turn] += own[places[begin + turn]]
                best, total = np.max(turned[:turns]), 0.0
                for turn in range(turns):
                    total += np.exp(turned[turn] - best)
                sums[number] += best + np.log(total / turns)
        out[document] = sums.min()
        out[document][chosen] = sums
