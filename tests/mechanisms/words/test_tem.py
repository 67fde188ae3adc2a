"""TEM: its guarantee, on all pairs of words, and its gamma."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from drawn_words import APART, DECLINES, EPSILON, PLACES, ROOM, WORDS, law

from quietcorpus.indexes.search.euclidean import Within
from quietcorpus.mechanisms.words.distance_draws import DistanceDraws
from quietcorpus.mechanisms.words.mechanism import OptionError
from quietcorpus.mechanisms.words.registry import word_mechanism
from quietcorpus.mechanisms.words.tem import BETA, TruncatedExponential, radius_of
from quietcorpus.pipelines.kinds.words.laws import largest_loss


@pytest.mark.parametrize("name", ["tem", "tem beyond its table"])
def test_no_pair_of_words_loses_more_than_its_distance(name: str) -> None:
    # Kills: any constant in a weight that is not the paper's; the planted faults have a peer's.
    decline = DECLINES[name]
    draws = DistanceDraws(PLACES, decline)
    logs = draws.log_laws(np.arange(WORDS, dtype=np.int32))
    assert largest_loss(logs, APART) <= float(decline.epsilon) * (1 + 1e-9)
    assert np.allclose(np.exp(logs), law(decline), rtol=1e-9, atol=0)
    # The loss also stays below epsilon times gamma.
    assert decline.truncation is not None
    far = float(decline.truncation)
    losses = np.abs(logs[:, None] - logs).max(axis=2)
    assert (losses <= float(decline.epsilon) * np.minimum(APART, far) + 1e-9).all()


def test_weights_decline_as_far_as_gamma() -> None:
    decline = TruncatedExponential(Fraction(3)).decline(EPSILON, WORDS)
    assert (decline.epsilon, decline.truncation) == (EPSILON, 3)


def test_words_at_one_place_have_one_law() -> None:
    draws = DistanceDraws(Within(np.concatenate([ROOM[:9], ROOM[:9]])), DECLINES["tem"])
    logs = draws.log_laws(np.arange(18, dtype=np.int32))
    assert largest_loss(logs, np.tile(APART[:9, :9], (2, 2))) <= float(EPSILON)


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


@pytest.mark.parametrize("value", [Fraction(0), Fraction(-1)])
def test_a_gamma_of_no_use(value: Fraction) -> None:
    with pytest.raises(OptionError, match=r"^truncation: only tem takes it, above 0$"):
        TruncatedExponential(value)
    with pytest.raises(OptionError, match=r"^truncation: only tem takes it, above 0$"):
        word_mechanism("exponential", truncation=Fraction(1))


def test_gamma_is_the_one_that_was_given_or_that_follows() -> None:
    # Kills: gamma of one epsilon where words of a document have several.
    assert TruncatedExponential(Fraction(3)).gamma(None, WORDS) == 3
    assert TruncatedExponential().gamma(None, WORDS) is None
    assert TruncatedExponential().gamma(EPSILON, WORDS) == radius_of(EPSILON, WORDS)
