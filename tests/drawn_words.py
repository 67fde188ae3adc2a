"""A small vocabulary, and the laws by which its words are drawn for one another."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from quietcorpus.indexes.search.euclidean import Within
from quietcorpus.mechanisms.words.distance_draws import Decline
from quietcorpus.mechanisms.words.tem import TruncatedExponential
from quietcorpus.mechanisms.words.word_exponential import WordExponential

EPSILON, GAMMA = Fraction(2), Fraction(3, 2)
WORDS, DIMENSIONS = 60, 3
DECLINES = {
    "tem": TruncatedExponential(GAMMA).decline(EPSILON, WORDS),
    "tem beyond its table": TruncatedExponential(Fraction(3)).decline(Fraction(9), WORDS),
    "exponential": WordExponential().decline(EPSILON, WORDS),
    "exponential beyond its table": WordExponential().decline(Fraction(9), WORDS),
}
ROOM = np.random.default_rng(7).normal(size=(WORDS, DIMENSIONS)).astype(np.float32)
"""Vectors; which ones they are matters to no test."""
PLACES = Within(ROOM)
APART = np.linalg.norm(ROOM[:, None].astype(np.float64) - ROOM, axis=2)


def law(decline: Decline) -> npt.NDArray[np.float64]:
    """The law of the papers, float64 (V, V)."""
    far = math.inf if decline.truncation is None else float(decline.truncation)
    weights = np.exp(-float(decline.epsilon) / 2 * np.minimum(APART, far))
    found: npt.NDArray[np.float64] = weights / weights.sum(axis=1, keepdims=True)
    return found
