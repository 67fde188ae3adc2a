"""The measures of word vectors, by hand and by their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quietcorpus.evaluation.embeddings import map_letters, map_list, map_word, nearest, similarity

WORDS = ["night", "nights", "day", "sun"]


def test_the_nearest_words() -> None:
    # Kills: a word that is its own neighbour, products instead of cosines, the farthest first.
    vectors = np.array([[1.0, 0], [100, 100], [1, 0.1], [-1, 0]])
    assert nearest(vectors, np.array([0, 3]), 2).tolist() == [[2, 1], [1, 2]]


def test_a_word_without_a_vector_is_near_to_nothing() -> None:
    # Kills: lists of the first words of the vocabulary, which a gold model's are full of.
    vectors = np.array([[1.0, 0], [0, 0], [1, 1], [0, 0]])
    found = nearest(vectors, np.array([0, 1]), 2)
    assert found.tolist() == [[2, -1], [-1, -1]]
    gold = np.array([[1, 2], [0, 2]])
    assert map_list(found, gold).tolist() == [0.5, 0]
    assert map_word(found, gold).tolist() == [1, 0]
    assert map_letters(found, gold, WORDS)[1] == 0


@given(st.permutations(range(1, 7)))
def test_map_of_the_same_words_in_any_order(listed: list[int]) -> None:
    for measure in (map_list, map_word):
        assert measure(np.array([listed]), np.array([range(1, 7)]))[0] == pytest.approx(1)


@pytest.mark.parametrize(
    ("found", "hits", "whole"),
    [
        ([9, 5, 8, 4], 1 / 2, 1 / 8),  # in the slides of dpUGC, "eight", DP: .5
        ([9, 8, 5, 4], 1 / 3, 1 / 12),  # "eight", non-DP: .33
        ([9, 8, 4, 3], 0, 0),  # "three" and "they": 0
        ([5, 9, 6, 4], (1 + 2 / 3) / 2, (1 + 2 / 3) / 4),
        ([5, 9, 8, 4], 1, 1 / 4),
    ],
)
def test_map_by_hand(found: list[int], hits: float, whole: float) -> None:
    # The gold list is 5, 6, 7, 0. Kills: the paper's rule for ours or ours for the paper's,
    # precision at every place, a division by no hits.
    lists = np.array([found]), np.array([[5, 6, 7, 0]])
    assert map_word(*lists)[0] == pytest.approx(hits)
    assert map_list(*lists)[0] == pytest.approx(whole)


def test_map_by_letters() -> None:
    # <night> and <nights> share 5 of 6 and 7 pairs of letters. Kills: letters instead of pairs.
    assert map_letters(np.array([[0]]), np.array([[1]]), WORDS)[0] == pytest.approx((10 / 13) ** 2)
    assert map_letters(np.array([[2]]), np.array([[2]]), WORDS)[0] == 1
    assert map_letters(np.array([[3]]), np.array([[2]]), WORDS)[0] == 0


def test_similarity_is_a_rank_correlation_of_known_pairs() -> None:
    # Kills: Pearson's, pairs of unknown words, dot products.
    vectors = np.array([[1.0, 0], [50, 1], [1, 1], [0, 1]])
    numbers = {word: number for number, word in enumerate("abcd")}
    pairs = [("a", "b", 10.0), ("a", "c", 2.0), ("a", "d", 1.0), ("a", "unknown", 99.0)]
    assert similarity(vectors, numbers, pairs) == (pytest.approx(1), 3)
    assert np.isnan(similarity(vectors, numbers, pairs[3:])[0])
