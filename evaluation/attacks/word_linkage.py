"""Linkage of text released word by word, by the law of the words.

A released text is as long as its original, so only originals of its length come into question. The
attacker holds them, and knows the mechanism's law: the logarithm of an original's probability is
the sum, over its places, of log P(released word | original word). With all originals equally
likely, the likeliest is the best guess of one row.

A place at which the release draws a uniform word, since the index lacks the original's, has the
probability 1 / V.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

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
