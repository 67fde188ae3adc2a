"""Priors of texts by hand, and guesses of whole documents against all sequences."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt
import pytest

from quietcorpus.evaluation.attacks.best_guess import TextPrior, guessed_together, learnt

ALPHA = 1e-6
Floats = npt.NDArray[np.float64]


def chain(prior: TextPrior) -> Floats:
    """P(w' | w), whole."""
    dense: Floats = prior.pairs.toarray() + prior.rest[:, None] * prior.words
    return dense


def test_a_prior_by_hand() -> None:
    # Documents 0 1 0 2, then nothing, then 1 0. Word 0 is followed by 1 and by 2; 1 by 0, twice; 2
    # and 3 by nothing. Kills: pairs across documents, followers that are counted as often as they
    # occur, words without one more, a pair the other way round.
    offsets, words = np.array([0, 4, 4, 6]), np.array([0, 1, 0, 2, 1, 0], dtype=np.int32)
    prior = learnt(offsets, words, 4)
    np.testing.assert_allclose(prior.words, np.array([4, 3, 2, 1]) / 10)
    pairs = np.zeros((4, 4))
    pairs[0, [1, 2]], pairs[1, 0] = 1 / 4, 2 / 3
    np.testing.assert_allclose(prior.pairs.toarray(), pairs)
    np.testing.assert_allclose(prior.rest, [2 / 4, 1 / 3, 1, 1])
    np.testing.assert_allclose(chain(prior).sum(axis=1), 1)


@pytest.mark.parametrize("offsets", [[0, 0], [0, 1], [0, 0, 1, 1]])
def test_texts_without_a_pair(offsets: list[int]) -> None:
    # Kills: a look at the word before the first, or after the last.
    prior = learnt(np.array(offsets), np.zeros(offsets[-1], dtype=np.int32), 2)
    assert not prior.pairs.nnz
    np.testing.assert_array_equal(prior.rest, [1, 1])


def test_some_words_alone() -> None:
    # Kills: rows and columns that differ, chances that are lost with the other words.
    words = np.random.default_rng().integers(6, size=300)
    whole = learnt(np.array([0, 300]), words, 6)
    kept = np.array([1, 4, 5])
    some = whole.among(kept)
    np.testing.assert_allclose(some.words, whole.words[kept] / whole.words[kept].sum())
    np.testing.assert_allclose(some.pairs.toarray(), whole.pairs.toarray()[np.ix_(kept, kept)])
    np.testing.assert_allclose(chain(some).sum(axis=1), 1)


@pytest.mark.parametrize("length", [1, 2, 5])
def test_guesses_are_those_of_all_sequences(length: int) -> None:
    # Against the sum over 4^L sequences. Kills: a forward pass alone, a backward pass alone, a
    # place that is counted twice, a chain that is turned round, the prior of the first word.
    generator = np.random.default_rng()
    for _ in range(20):
        words = generator.choice(4, size=60, p=[0.4, 0.3, 0.2, 0.1])
        prior = learnt(np.array([0, 60]), words, 4)
        chances = generator.random((length, 4))
        chances *= 10.0 ** generator.integers(-30, 30, size=(length, 1))  # scales of their own
        steps, marginals = chain(prior), np.zeros((length, 4))
        scaled = chances / chances.max(axis=1, keepdims=True)
        for sequence in itertools.product(range(4), repeat=length):
            chance = prior.words[sequence[0]]
            for before, after in itertools.pairwise(sequence):
                chance *= steps[before, after]
            for place, word in enumerate(sequence):
                chance *= scaled[place, word]
            for place, word in enumerate(sequence):
                marginals[place, word] += chance
        found = guessed_together(prior, chances)
        np.testing.assert_array_equal(found, marginals.argmax(axis=1))


def test_words_around_tell_of_a_word() -> None:
    # A chain 0 1 2 0 1 2 ...: a word is seen as itself with 0.4 and as either other with 0.3, alone
    # right for .4, together for nearly all. 600 words; a share below .8 is not by chance. Kills:
    # pairs that are not used.
    generator = np.random.default_rng()
    prior = learnt(np.array([0, 3000]), np.tile(np.arange(3), 1000), 3)
    truth = np.tile(np.arange(3), 200)
    law = np.where(np.eye(3, dtype=bool), 0.4, 0.3)
    seen = np.array([generator.choice(3, p=law[word]) for word in truth])
    together = guessed_together(prior, law[:, seen].T)
    assert (together == truth).mean() > 0.8
    alone = (prior.words * law[:, seen].T).argmax(axis=1)
    assert (alone == truth).mean() < 0.6
