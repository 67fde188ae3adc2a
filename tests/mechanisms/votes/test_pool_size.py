"""The pool that voters suffice for, and the first release that narrows one, by simulated votes."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.mechanisms.votes.ballots import Ballots
from quietcorpus.mechanisms.votes.estimates import stand_out
from quietcorpus.mechanisms.votes.pool_size import largest_pool, least_rounds, least_voters
from quietcorpus.mechanisms.votes.pure_votes import PureVotes
from quietcorpus.mechanisms.votes.votes import Votes

DELTA = Fraction(1, 10**6)
EVERY: list[Ballots] = [
    Votes(20, Fraction(1), DELTA),
    PureVotes(3, Fraction(1)),
]


@pytest.mark.parametrize("strata", [1, 3])
@pytest.mark.parametrize("votes", EVERY)
def test_about_half_of_a_pool_of_that_size_stands_out(votes: Ballots, strata: int) -> None:
    # Votes are at the threshold there, and noise is even: a share of 3,000 texts or more is off by
    # .05 at most (five deviations), while at twice the size hardly any stand out, and at half of it
    # nearly all. Kills: a vote that counts for all of a document's, strata that are not counted,
    # the deviation for the threshold.
    voters = least_voters(votes, 9_000 // strata, strata)
    size = largest_pool(votes, voters, strata)
    assert size == pytest.approx(9_000 // strata, abs=2)
    assert least_voters(votes, size, strata) <= voters < least_voters(votes, size + 1, strata)
    for texts, low, high in ((2 * size, 0, 0.1), (size, 0.45, 0.6), (size // 2, 0.9, 1)):
        given = votes.nearest * votes.weight * voters // (texts * strata)
        sums = np.full((strata, texts), given, dtype=np.int64)
        noisy = votes.release(sums, ReleaseKey.fresh().stage("test", 1))
        assert low <= votes.stand_out(noisy).mean() <= high


def test_the_first_release_is_the_least_that_shows_a_list() -> None:
    # Lists lie five deviations up where three are asked for, so that .976 of 200 stand out: .9 is
    # missed once in 10^8. Those of 16 texts lie at three, and take a larger share. Kills: noise of
    # a list that does not grow, votes of one text for a list's, the largest share, labels that do
    # not add up.
    votes = Votes(20, Fraction(2), DELTA)
    found, of_few = (least_rounds(votes, Fraction(size), 2) for size in (100, 8))
    assert found is not None
    assert of_few is not None
    assert found.first == Fraction(1, 5) < of_few.first
    for rounds, size, least in ((found, 100, 0.9), (of_few, 8, 0.5)):
        first, second = (Votes(20, one, DELTA) for one in (rounds.first, rounds.second))
        sums = np.full((2, 200 * size), second.least, dtype=np.int64)
        noisy = first.release(sums, ReleaseKey.fresh().stage("test", 1))
        assert stand_out(noisy, np.full(200, size), first.deviation).mean() >= least
    # Lists of as many sums are shown by the same release, however many labels they are of.
    of_one_label = least_rounds(votes, Fraction(16), 1)
    assert of_one_label == of_few != least_rounds(votes, Fraction(8), 1)
    # The noise of a single text is larger in the first release, whatever its share.
    assert least_rounds(votes, Fraction(1), 1) is None


def test_the_least_first_release_under_geometric_noise() -> None:
    # Epsilons add up, so that lists of s texts stand out in the first release, at the share a, if
    # 6 s / (1 - a) is at least 3 sqrt(2 s) / a: from 41 sums on at a tenth, from 8 on at a fifth.
    # 200 sums lie 6.6 deviations up where three are asked for: nearly all lists stand out. Kills: a
    # Gaussian's budgets or thresholds, a delta, the noise of one text for a list's.
    votes = PureVotes(3, Fraction(2))
    for size, tenths in ((41, 1), (40, 2), (9, 2), (7, 3)):
        found = least_rounds(votes, Fraction(size), 1)
        assert found is not None
        assert (found.first, found.second) == (Fraction(tenths, 5), 2 - Fraction(tenths, 5))
    first, second = (PureVotes(3, Fraction(tenths, 5)) for tenths in (1, 9))
    sums = np.full((2, 200 * 100), second.least, dtype=np.int64)
    noisy = first.release(sums, ReleaseKey.fresh().stage("test", 1))
    assert stand_out(noisy, np.full(200, 100), first.deviation).mean() >= 0.9


def test_a_budget_that_is_too_small_to_divide() -> None:
    # The first would need more noise than there is. Kills: an error in a dry run.
    assert least_rounds(Votes(20, Fraction(7, 100), DELTA), Fraction(100), 1) is None
    assert least_rounds(PureVotes(500, Fraction(1, 10)), Fraction(100), 1) is None
