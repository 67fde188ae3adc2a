"""Pairs of words near each other: against a double loop over every text."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quietcorpus.mechanisms.words.word_pairs import balanced_matrix, balanced_weights, pair_weights

LARGEST = 2**31 - 1
# Few words, so that they repeat within a window; and the largest numbers there are.
words = st.one_of(st.integers(0, 4), st.sampled_from([LARGEST - 1, LARGEST]))
texts = st.lists(st.lists(words, max_size=12), max_size=6)
windows = st.integers(1, 15)

Found = dict[tuple[int, int], float]


def arrays(given_texts: list[list[int]]) -> list[np.ndarray]:
    """As a share holds them: read-only."""
    raw = [np.array(text, dtype="<i4").tobytes() for text in given_texts]
    return [np.frombuffer(text, dtype="<i4") for text in raw]


def brute(given_texts: list[list[int]], window: int) -> dict[tuple[int, int], Fraction]:
    found: dict[tuple[int, int], Fraction] = defaultdict(Fraction)
    for text in given_texts:
        for i, one in enumerate(text):
            for j, other in enumerate(text):
                if i < j <= i + window:
                    pair = min(one, other), max(one, other)
                    found[pair] += Fraction(window - (j - i) + 1, window)
    return found


def found_by(given_texts: list[list[int]], window: int) -> Found:
    low, high, weights = pair_weights(arrays(given_texts), window)
    assert low.dtype == high.dtype == np.int64
    assert weights.dtype == np.float64
    pairs = list(zip(low.tolist(), high.tolist(), strict=True))
    assert pairs == sorted(set(pairs))
    return dict(zip(pairs, weights.tolist(), strict=True))


@given(given_texts=texts, window=windows)
def test_pairs_by_brute_force(given_texts: list[list[int]], window: int) -> None:
    # Kills: a window one too short or long, a weight that does not fall with the distance, a word
    # that makes no pair with itself, pairs in two orders, cells that overflow at large numbers.
    found, expected = found_by(given_texts, window), brute(given_texts, window)
    assert found.keys() == expected.keys()
    for pair, weight in expected.items():
        assert found[pair] == pytest.approx(float(weight), rel=1e-12)


@given(given_texts=texts, window=windows)
def test_texts_do_not_touch(given_texts: list[list[int]], window: int) -> None:
    # Kills: pairs across the end of a text (which a double loop with the same mistake would miss).
    total: Found = defaultdict(float)
    for text in given_texts:
        for pair, weight in found_by([text], window).items():
            total[pair] += weight
    found = found_by(given_texts, window)
    assert found.keys() == total.keys()
    for pair, weight in total.items():
        assert found[pair] == pytest.approx(weight, rel=1e-12)
    assert found_by([[word] for text in given_texts for word in text], window) == {}


@pytest.mark.parametrize("given_texts", [[], [[]], [[], []], [[3]], [[3], [], [3], [5]]])
def test_nothing_stands_near_anything(given_texts: list[list[int]]) -> None:
    # Kills: a user without a pair ends the stage.
    assert found_by(given_texts, 5) == {}


def test_weights_fall_with_the_distance() -> None:
    # By hand. Kills: a brute force with the same mistake.
    found = found_by([[7, 8, 9, 7]], 3)
    assert found == pytest.approx({(7, 8): 1 + 2 / 3, (7, 9): 2 / 3 + 1, (7, 7): 1 / 3, (8, 9): 1})
    assert found_by([[2, 2, 2]], 2) == {(2, 2): 1 + 1 + 0.5}


@given(given_texts=texts, window=windows)
def test_balanced_weights_by_brute_force(given_texts: list[list[int]], window: int) -> None:
    # Kills: a word's pairs with itself counted once in its own weight, one word's weight alone.
    pairs = brute(given_texts, window)
    own: dict[int, Fraction] = defaultdict(Fraction)
    for (one, other), weight in pairs.items():
        own[one] += weight
        own[other] += weight
    low, high, weights = balanced_weights(arrays(given_texts), window)
    assert weights.dtype == np.float64
    found = dict(zip(zip(low.tolist(), high.tolist(), strict=True), weights, strict=True))
    assert found.keys() == pairs.keys()
    for (one, other), weight in pairs.items():
        expected = float(weight) / float(own[one] * own[other]) ** 0.5
        assert found[one, other] == pytest.approx(expected, rel=1e-12)


@given(given_texts=texts, window=windows)
def test_the_matrix_of_balanced_weights(given_texts: list[list[int]], window: int) -> None:
    # Kills: pairs in one order, words without a pair, a diagonal that is counted once.
    low, high, weights = balanced_weights(arrays(given_texts), window)
    words, matrix = balanced_matrix(arrays(given_texts), window)
    assert (words.dtype, matrix.dtype) == (np.int32, np.float32)
    assert words.tolist() == sorted({*low.tolist(), *high.tolist()})
    expected = np.zeros(matrix.shape)
    rows, columns = np.searchsorted(words, low), np.searchsorted(words, high)
    np.add.at(expected, (rows, columns), weights)
    np.add.at(expected, (columns, rows), weights)
    np.testing.assert_allclose(matrix, expected, rtol=1e-6)
    assert np.linalg.norm(matrix, 2) <= 1 + 1e-6 if len(words) else True
