"""Neighbours against sorting all distances."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from quietcorpus.evaluation.distances import euclidean_neighbours, hamming_neighbours

RANKS = [1, 2, 40, 199]


def test_euclidean_neighbours_are_those_of_a_full_sort() -> None:
    # Kills: a word as its own neighbour, ranks off by one, ranks in another order than asked for,
    # a block's words mixed up, distances squared. Word 9 has a twin: its nearest is at zero.
    generator = np.random.default_rng()
    vectors = generator.normal(2, 1, size=(200, 7)).astype(np.float32)
    vectors[150] = vectors[9]
    words = np.array([9, *generator.choice(200, 80, replace=False)])
    expected = np.sort(cdist(vectors[words].astype(float), vectors.astype(float)), axis=1)
    for ranks in (RANKS, RANKS[::-1]):
        found = euclidean_neighbours(vectors, words, ranks)
        np.testing.assert_allclose(found, expected[:, ranks], rtol=1e-12)
    assert euclidean_neighbours(vectors, words, [1])[0, 0] == 0


def test_hamming_neighbours_are_those_of_a_full_sort() -> None:
    # Kills: a word as its own neighbour, the first 64 bits alone, uint8 sums that wrap (the last
    # two codes are 320 bits apart).
    generator = np.random.default_rng()
    codes = generator.integers(2**64, size=(200, 5), dtype=np.uint64)
    codes[-2], codes[-1] = 0, 2**64 - 1
    bits = np.unpackbits(codes.view(np.uint8), axis=1)
    words = np.array([198, 199, 0, 7])
    expected = np.sort((bits[words][:, None] != bits).sum(axis=2), axis=1)
    np.testing.assert_array_equal(hamming_neighbours(codes, words, RANKS), expected[:, RANKS])


@pytest.mark.parametrize("ranks", [[], [0], [-1], [1, 200]])
def test_ranks_that_do_not_exist(ranks: list[int]) -> None:
    words = np.arange(2)
    with pytest.raises(ValueError, match="1 to 199"):
        euclidean_neighbours(np.zeros((200, 2), dtype=np.float32), words, ranks)
    with pytest.raises(ValueError, match="1 to 199"):
        hamming_neighbours(np.zeros((200, 1), dtype=np.uint64), words, ranks)
