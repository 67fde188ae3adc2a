"""The words within a radius, and their distances: the same numbers everywhere."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from quietcorpus.indexes.search.euclidean import Within


def room(words: int = 700, dimensions: int = 5) -> np.ndarray:
    return np.random.default_rng().normal(size=(words, dimensions)).astype(np.float32)


def test_all_words_within_the_radius_are_found_in_order() -> None:
    # Kills: a tile left out, rows of one word in another's place, ids that restart with a tile.
    vectors = room()
    words = np.array([699, 0, 350], dtype=np.int32)
    offsets, ids, squares = Within(vectors).within(words, 1.5)
    for row, word in enumerate(words):
        own = slice(offsets[row], offsets[row + 1])
        apart = np.zeros(len(vectors))
        for k in range(vectors.shape[1]):  # in the order of the dimensions
            apart += (vectors[word, k].astype(np.float64) - vectors[:, k]) ** 2
        expected = np.flatnonzero(apart <= 1.5**2)
        assert ids[own].tolist() == expected.tolist()
        assert squares[own].tolist() == apart[expected].tolist()


def test_a_word_on_the_radius_is_within_it_although_squares_are_rounded() -> None:
    # Kills: a limit without room for a square's error: the law would need the word in its table.
    vectors = room(300)
    found = Within(vectors)
    for word in range(1, 300):
        exact = found.exactly(0, np.array([word], dtype=np.int32))[0]
        radius = float(exact) ** 0.5
        ids = found.within(np.zeros(1, np.int32), radius)[1]
        assert word in ids


def test_squares_are_exact_and_floats_err_by_little() -> None:
    vectors = np.concatenate([room(6), np.float32([[1e-40, 1e11, 0, -3, 2.0**-149]])])
    found = Within(vectors)
    others = np.arange(7, dtype=np.int32)
    exact = found.exactly(6, others)
    for other, square in enumerate(exact):
        pairs = zip(vectors[6].tolist(), vectors[other].tolist(), strict=True)
        assert square == sum((Fraction(a) - Fraction(b)) ** 2 for a, b in pairs)
    floats = found.between(np.full(7, 6, np.int32), others)
    for square, value in zip(exact, floats.tolist(), strict=True):
        assert abs(Fraction(value) - square) <= square * (5 + 4) / 2**53


def test_vectors_beyond_all_use_are_refused() -> None:
    with pytest.raises(ValueError, match="longer than"):
        Within(np.full((2, 3), np.inf, dtype=np.float32))
