"""Search for a released text by a few facts of its original, by the law of the words.

A sentence stands in a released text place by place, at a place that the attacker does not know. So
the ratio of a text's chance with the sentence and without is, over all places, the mean of

    product over the sentence's words of P(released word | word) / P(released word),

where the lower chance is that under words as they are frequent in all originals. A word alone is a
sentence of one word. Sentences are taken for independent, and their ratios multiplied.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from quietcorpus.compiled import compiled

from .linkage import Score
from .word_laws import Ids, Law
from .word_linkage import LawOf, Originals, classes

Matrix = npt.NDArray[np.float32]

MOST_CELLS = 1 << 28
"""The most logarithms of words under words that are held: a gigabyte."""
_OUTPUTS_AT_ONCE = 64
_STEPS, _FEWEST = 1 << 30, 50
_LEAST, _NONE = 1e-30, -100.0


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
        logs[:-1, some] = np.log(np.maximum(chances, _LEAST)).T
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
            out[word, row] = np.log(max(total, np.float32(_LEAST)) / size)


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
