"""Scores of canaries whose coins are partly known, and what a guarantee allows a Gaussian."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from quietcorpus.mechanisms.accounting.guarantees import DocumentPrivacy
from quietcorpus.mechanisms.accounting.privacy_loss import noise_multiplier_for
from quietcorpus.pipelines.canaries.game import (
    apart_of,
    by_difference,
    by_outcome,
    by_turns,
    enough,
    of_user,
    weaker,
)
from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.users.users import Users


def test_outcomes_are_scored_by_the_known_coins_alone() -> None:
    # Kills: sides exchanged, outcomes of unknown coins that count, a half that is not added.
    known = np.array([True, True, False, False])
    found = by_outcome(["a", "a", "a", "b", "a", "b", "c"], known)
    assert found == pytest.approx([math.log(2.5 / 1.5), math.log(0.5 / 1.5), 0.0])


def test_numbers_are_scored_along_the_difference() -> None:
    known = np.array([True, False, True])
    outcomes = np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0], [5.0, 0.0], [0.0, 5.0]])
    assert by_difference(outcomes, known) == pytest.approx([10.0, -10.0])
    assert by_difference(outcomes, np.array([True] * 3)) == pytest.approx([0.0, 0.0])


@pytest.mark.parametrize("epsilon", [1, 4])
def test_a_gaussian_of_the_stated_epsilon_is_not_refuted(epsilon: int) -> None:
    # Kills: rho for mu, half of the distance. The multiplier is what releases take.
    delta = Fraction(1, 10**6)
    own = 1 / noise_multiplier_for(Fraction(epsilon), delta, Fraction(1), 1)
    assert own <= apart_of(DocumentPrivacy(Fraction(epsilon), delta)) <= float(own) * 1.01


def test_a_canary_has_the_largest_budget() -> None:
    # Kills: the first group, a level's number for its name.
    assert of_user(Users("who", "team", ("silver", "gold")), "x") == {"who": "x", "team": "gold"}
    assert of_user(Users("who"), "x") == {"who": "x"}


def test_canaries_take_groups_by_turns() -> None:
    # Kills: canaries of the largest budget alone, and so many others that few are left of it.
    teams = Users("who", "team", ("tin", "silver", "gold"))
    found = [of_user(teams, "x", by_turns(number, [0, 1, 2]))["team"] for number in range(9)]
    assert found == ["tin", *["gold"] * 3, "silver", *["gold"] * 3, "tin"]
    assert weaker(9, [0, 1, 2]) == 3
    assert (by_turns(0, [2]), weaker(9, [2])) == (2, 0)


def test_too_many_are_refused() -> None:
    enough(3, 3, "things")
    with pytest.raises(InputError, match="things have room for 3"):
        enough(4, 3, "things")
