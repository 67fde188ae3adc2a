"""The laws by which a word-level release replaces the words of an index on a line."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from privatized_words import (
    ALPHA,
    BOTH,
    LINE,
    MADLIB,
    ON_A_LINE,
    SHARP,
    VICKREY,
    parameters,
    release,
)
from scipy import stats

from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.mechanisms.words.mechanism import WordMechanism
from quietcorpus.mechanisms.words.vickrey import first_chance


@BOTH
def test_a_drawn_word_is_uniform(mechanism: WordMechanism, key: ReleaseKey) -> None:
    # 48,000 draws of 3 words: a share 5 % off adds 80 to a statistic that is refused above 28.
    # Kills: a draw from a part of the vocabulary, one draw for all unknown words of a text or for
    # all equal ones, known words that are drawn, epsilon or the source word at work in the draw.
    text = " ".join(["zebra alpha"] * 48_000)
    given = parameters(mechanism, SHARP, out_of_vocabulary="draw")
    (released,) = release(given, ON_A_LINE, key, text)
    words = released.split(" ")
    assert set(words[1::2]) == {"alpha"}
    counts = [words[::2].count(word) for word in LINE]
    assert stats.chisquare(counts).pvalue >= ALPHA
    places = [LINE.index(word) for word in words[::2]]
    joint = np.bincount([3 * a + b for a, b in zip(places[::2], places[1::2], strict=True)])
    assert stats.chisquare(joint).pvalue >= ALPHA
    places = np.array(counts) * [1.1, 0.95, 0.95]  # the control
    assert stats.chisquare(places).pvalue < ALPHA


def law(mechanism: WordMechanism, epsilon: float, word: int) -> np.ndarray:
    """The chances of a word's three outputs on the line."""
    if mechanism is MADLIB:
        below = stats.laplace([0, 1, 3][word], 1 / epsilon).cdf([0.5, 2])
        return np.diff(below, prepend=0, append=1)
    # Codes 000, 001 and 111: the two upper bits together, and the lowest.
    p = 1 / (1 + math.exp(epsilon))
    chances = np.zeros(3)
    for pattern in range(8):
        apart = (pattern ^ (0, 1, 7)[word]).bit_count()
        nearest = min(range(3), key=lambda j: ((pattern ^ (0, 1, 7)[j]).bit_count(), j))
        chances[nearest] += p**apart * (1 - p) ** (3 - apart)
    return chances


def agrees(released: list[str], chances: np.ndarray) -> bool:
    counts = [released.count(word) for word in LINE]
    return bool(stats.chisquare(counts, chances * len(released)).pvalue >= ALPHA)


# Power: of 40,000 words at a per-word epsilon of 1 or 2/3, epsilon off by a quarter adds at least
# 500 to a statistic of two degrees, which is refused above 28.


@BOTH
@pytest.mark.parametrize("word", range(3))
def test_a_words_law_is_the_mechanisms(
    mechanism: WordMechanism, word: int, key: ReleaseKey
) -> None:
    # Kills: another vector or code than the word's own, epsilon upside down.
    (released,) = release(
        parameters(mechanism, Fraction(1)), ON_A_LINE, key, (LINE[word] + " ") * 40_000
    )
    words = released.split(" ")
    assert agrees(words, law(mechanism, 1, word))
    assert not agrees(words, law(mechanism, 1.25, word))
    assert not agrees(words, law(mechanism, 0.75, word))


@BOTH
@pytest.mark.parametrize(("policy", "shares"), [("drop", 3), ("draw", 6)])
def test_a_documents_epsilon_is_shared_by_its_words(
    mechanism: WordMechanism, policy: Any, shares: int, key: ReleaseKey
) -> None:
    # 3 known words and 3 unknown ones: dropped words have no share, drawn ones have one. Kills:
    # epsilon a word, a share of all tokens where some are dropped, of the batch's words, or of one
    # word more or less; a share from another document.
    given = parameters(mechanism, Fraction(shares), per="document", out_of_vocabulary=policy)
    others = ["alpha beta gamma gamma", "", "gamma " * 200]
    text = " ".join(["gamma zebra"] * 3)
    texts = release(given, ON_A_LINE, key, *others, *[text] * 13_500)[3:]
    words = [w for t in texts for w in (t.split(" ")[::2] if policy == "draw" else t.split(" "))]
    assert len(words) == 40_500
    assert agrees(words, law(mechanism, 1, 2))
    for wrong in (0.5, 0.75, 1.25, 2):
        assert not agrees(words, law(mechanism, wrong, 2))


@pytest.mark.parametrize("word", range(3))
def test_a_words_law_under_vickreys_choice(word: int, key: ReleaseKey) -> None:
    # By integration over the noisy point. Each wrong law adds 480 or more to a statistic of two
    # degrees; the word in the middle tells t from 1 alone. Kills: Madlib's word, the second word,
    # another t, epsilon upside down.
    def law_of(epsilon: float, tuning: float) -> np.ndarray:
        places, points = np.array([0.0, 1, 3]), np.linspace(-25, 28, 530_001)
        masses = np.exp(-epsilon * np.abs(points - places[word]))
        apart = np.abs(points[:, None] - places)
        order = np.argsort(apart, axis=1)[:, :2]
        first = first_chance(np.take_along_axis(apart, order, axis=1) ** 2, tuning)
        chances = np.zeros(3)
        np.add.at(chances, order[:, 0], masses * first)
        np.add.at(chances, order[:, 1], masses * (1 - first))
        return chances / masses.sum()

    given = parameters(VICKREY, Fraction(1))
    (released,) = release(given, ON_A_LINE, key, (LINE[word] + " ") * 40_000)
    words = released.split(" ")
    assert agrees(words, law_of(1, 0.5))
    of_tuning = [] if word == 1 else [(1, 0.35), (1, 0.65), (1, 1e-9)]
    for wrong in ((1.3, 0.5), (0.5, 0.5), (1, 1.0), *of_tuning):
        assert not agrees(words, law_of(*wrong))
