"""TEM: its guarantee, on all pairs of words, and its gamma."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from drawn_words import APART, DECLINES, EPSILON, PLACES, ROOM, WORDS, law

from quietcorpus.indexes.within import Within
from quietcorpus.mechanisms.words.distance_draws import DistanceDraws
from quietcorpus.mechanisms.words.tem import BETA, TruncatedExponential, radius_of
from quietcorpus.pipelines.kinds.words.laws import largest_loss, log_laws


@pytest.mark.parametrize("name", ["tem", "tem beyond its table"])
def test_no_pair_of_words_loses_more_than_its_distance(name: str) -> None:
    # Kills: any constant in a weight that is not the paper's; the planted faults have a peer's.
    decline = DECLINES[name]
    draws = DistanceDraws(PLACES, decline)
    assert largest_loss(draws, PLACES, WORDS) <= float(decline.epsilon) * (1 + 1e-9)
    logs = log_laws(draws, PLACES, np.arange(WORDS, dtype=np.int32))
    assert np.allclose(np.exp(logs), law(decline), rtol=1e-9, atol=0)
    # The loss also stays below epsilon times gamma.
    assert decline.truncation is not None
    far = float(decline.truncation)
    losses = np.abs(logs[:, None] - logs).max(axis=2)
    assert (losses <= float(decline.epsilon) * np.minimum(APART, far) + 1e-9).all()


def test_weights_decline_as_far_as_gamma() -> None:
    decline = TruncatedExponential(EPSILON, Fraction(3)).decline
    assert (decline.epsilon, decline.truncation) == (EPSILON, 3)


def test_words_at_one_place_have_one_law() -> None:
    twice = Within(np.concatenate([ROOM[:9], ROOM[:9]]))
    draws = DistanceDraws(twice, DECLINES["tem"])
    assert largest_loss(draws, twice, 18) <= float(EPSILON)


@pytest.mark.parametrize("words", [2, 60, 341_479])
@pytest.mark.parametrize("epsilon", [Fraction(1, 3), Fraction(10)])
def test_gamma_holds_farther_words_to_beta(words: int, epsilon: Fraction) -> None:
    # Kills: V for V - 1 the other way, ln BETA alone, epsilon for epsilon / 2.
    def farther(gamma: Fraction) -> float:
        others = (words - 1) * math.exp(-float(epsilon * gamma) / 2)
        return others / (1 + others)

    gamma = radius_of(epsilon, words)
    assert farther(gamma) <= float(BETA)
    assert farther(gamma * Fraction(9999, 10_000)) > float(BETA)
