"""The audit of the laws by which words are drawn: every pair of words, and every word drawn."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from quietcorpus.compiled import compiled
from quietcorpus.evaluation.audits.findings import Exact
from quietcorpus.indexes.within import Within
from quietcorpus.indexes.word_index import WordIndex
from quietcorpus.mechanisms.distance_draws import DistanceDraws
from quietcorpus.mechanisms.guarantees import round_up
from quietcorpus.transforms.privatizers.words import WordsParameters, decline_of

_WORDS, _RATIOS, _CHANCES = 2_000, 1 << 33, 1 << 25  # a pair has V ratios, and a word V chances
_ROUNDING = 2.0**-32
"""The difference of logarithms, of sums of floats, that may be rounding alone."""


def of_laws(parameters: WordsParameters, index: WordIndex) -> Exact:
    """Return the audit of all pairs of the index's first words, as many as minutes allow.

    Where a document's words share epsilon, its single word has all of it.
    """
    size = len(index.vocabulary)
    words = min(size, _WORDS, math.isqrt(2 * _RATIOS // size), max(2, _CHANCES // size))
    epsilon = parameters.epsilon
    decline = decline_of(parameters.mechanism, epsilon, parameters.truncation, size)

    def find() -> float:
        distances = Within(index.vectors)
        return largest_loss(DistanceDraws(distances, decline), distances, words)

    return Exact(
        "words: the laws of all pairs, a unit of distance",
        round_up(epsilon),
        f"For all pairs of {words:,} words, the chances of each of {size:,} words were compared, "
        "from the weights that tables are made of.",
        find,
    )


def largest_loss(draws: DistanceDraws, distances: Within, words: int) -> float:
    """Return the largest log-ratio of a word's chances, a unit of distance, over all pairs.

    It is infinite where words at one place differ.
    """
    chosen = np.arange(words, dtype=np.int32)
    logs = log_laws(draws, distances, chosen)
    squares = distances.within(chosen, np.inf)[2].reshape(words, -1)
    return float(_largest(logs, np.sqrt(squares[:, :words]), _ROUNDING))


def log_laws(
    draws: DistanceDraws, distances: Within, words: npt.NDArray[np.int32]
) -> npt.NDArray[np.float64]:
    """Return the logarithms of all words' chances, float64 (n, V), by what is drawn from."""
    (offsets, ids, _), rests, bases = draws.weights(words)
    logs = np.empty((len(words), distances.size))
    for row, base in enumerate(bases):
        _, _, squares = distances.within(words[row : row + 1], np.inf)
        logs[row] = math.log(base) + draws.log_chances(squares)
        own = slice(offsets[row], offsets[row + 1])
        with np.errstate(divide="ignore"):
            logs[row, ids[own]] = np.logaddexp(logs[row, ids[own]], np.log(rests[own]))
    logs -= logsumexp(logs, axis=1, keepdims=True)
    return logs


@compiled
def _largest(logs, distances, rounding):  # type: ignore[no-untyped-def]
    """Return the largest difference of two rows a unit of the distance between them."""
    largest = 0.0
    for one in range(len(logs)):
        for other in range(one):
            loss = 0.0
            for word in range(logs.shape[1]):
                loss = max(loss, abs(logs[one, word] - logs[other, word]))
            loss = max(0.0, loss - rounding)
            if loss > 0.0:
                distance = distances[one, other]
                largest = max(largest, loss / distance if distance > 0.0 else np.inf)
    return largest
