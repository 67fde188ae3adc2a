"""Pairs of documents of one sentence more or less, and what draws of candidates show of them."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from quietcorpus.mechanisms.sentences.deep_candidate import DeepCandidate, Utility
from quietcorpus.pipelines.kinds.sentence_embeddings.checks import Pair, divides

UNITS = 255


def pair(epsilon: float, one: list[float], other: list[float]) -> Pair:
    law = DeepCandidate(Fraction(epsilon), Utility.SIMILARITY, 1)
    found = np.rint(UNITS * np.array([one, other])).astype(np.int32)
    return Pair.of(law, ("a",), ("b",), found)


def test_what_a_draw_shows_is_that_of_twice_the_epsilon() -> None:
    # At epsilon 1, doubled, weights are exp(u): e to 1 for one document, and 1 to e for the other.
    # Kills: the stated epsilon, ratios the other way round.
    found = pair(1, [1, 0], [0, 1])
    assert found.chances == pytest.approx(np.array([[0.7311, 0.2689], [0.2689, 0.7311]]), abs=1e-4)
    assert found.ratios == pytest.approx([1.0, -1.0])


def test_the_surest_guesses_are_where_draws_tell_most() -> None:
    # The first candidate is rare: e^2 / (e^2 + e^2) for one document, 1 / (1 + e^4) for the other,
    # at twice epsilon 2. Of every two canaries one has its sides exchanged; in a share of
    # (.5 + .018) / 2 of all canaries such a draw is seen, and half of the guesses are of each kind.
    # Kills: guesses of one side where the other side tells less; the share of one kind for all.
    found = pair(2, [1, 1], [0, 2])
    one, other = 1 / 2, 1 / (1 + math.exp(4))
    assert found.chances[:, 0] == pytest.approx([one, other], abs=1e-3)
    sure = (one + other) / 2
    assert found.right(sure) == pytest.approx(one / (one + other), abs=1e-3)
    assert found.right(sure / 2) == pytest.approx(one / (one + other), abs=1e-3)
    # All together: beyond the first candidate, the second one's draws are guessed as well.
    assert found.right(1.0) == pytest.approx((one + 1 - other) / 2, abs=1e-3)
    assert found.tells(2) > 0 > pair(2, [1, 0], [0.5, 0.5]).tells(2)


def test_a_draw_that_says_nothing_is_a_coin() -> None:
    found = pair(4, [1, 0.5], [1, 0.5])
    assert found.right(0.25) == pytest.approx(0.5)


def test_documents_that_are_divided_otherwise_are_no_canaries() -> None:
    # Two such documents may differ in more sentences than one, and fail a release that keeps its
    # promise. Kills: a comparison of numbers, sentences beyond those of the document.
    assert divides(("It rained.", "We left.", "It rained."), "en")
    assert not divides(("A heading", "We left."), "en")
    assert not divides(("It rained. We left.",), "en")
    assert not divides(("It rained. ", "We left."), "en")
