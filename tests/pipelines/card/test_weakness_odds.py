"""Guarantees in odds, against what an adversary can do at most."""

from __future__ import annotations

import math
import re
from fractions import Fraction

import numpy as np
import pytest

from quietcorpus.mechanisms.accounting.guarantees import (
    DocumentPrivacy,
    LimitedPrecision,
    MetricPrivacy,
    SentencePrivacy,
    UserPrivacy,
)
from quietcorpus.pipelines.card.model import Meaning
from quietcorpus.pipelines.card.weakness import factor, in_short, in_words

PURE = Fraction(0)


@pytest.mark.parametrize(
    ("exponent", "said"),
    [
        (0, "1.00"),
        (1, "2.72"),
        (Fraction(23, 10), "9.98"),
        (3, "21"),
        (10, "23,000"),
        (13.99, "1,191,000"),
        (14, "10^7"),
        (1000, "10^435"),
    ],
)
def test_a_factor_is_rounded_up(exponent: float | Fraction, said: str) -> None:
    # Kills: rounding to the nearest, an overflow.
    assert factor(exponent) == said


def test_epsilon_alone_moves_odds_by_its_exponential() -> None:
    # 1 : 1 becomes 7.39 : 1, and 1 : 999 becomes 7.39 : 999, which is 1 in 136.2. Kills: epsilon in
    # place of its exponential, odds taken for chances, rounding in the publisher's favour.
    first, farther = in_words(LimitedPrecision(10, Fraction(2), PURE))
    assert "at most 10 words added or removed or 5 replaced" in first
    assert first.endswith(
        "by at most a factor of 7.39: from 1 in 2 to 89 in 100 at most, and from 1 in 1,000 to 1 "
        "in 136."
    )
    assert farther == "For versions k times as far apart, it is the k-th power of that."
    (sentence, _) = in_words(SentencePrivacy(Fraction(10)))
    assert "a factor of 23,000: from 1 in 2 to all but 1 in 22,028 at most" in sentence


@pytest.mark.parametrize("delta", [PURE, Fraction(1, 10**6)])
def test_chances_that_no_float_tells_from_one(delta: Fraction) -> None:
    # Kills: the chance of a wrong guess, which vanishes, taken for what is said of it.
    first, *_ = in_words(UserPrivacy(Fraction(10_000), delta))
    assert "all but 1 in 10^4343" in first


@pytest.mark.parametrize("delta", [Fraction(1, 10**6), Fraction(1, 10)])
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(1), Fraction(4)])
def test_delta_is_never_left_out(epsilon: Fraction, delta: Fraction) -> None:
    # The mechanism that gives all away with a chance of delta, and else answers as epsilon allows,
    # is the worst there is (Kairouz, Oh and Viswanath 2015): what is said must cover it. Kills:
    # odds within exp(epsilon) promised despite delta, a guess whose delta is forgotten.
    guess, odds = in_words(DocumentPrivacy(epsilon, delta))[:2]
    e, d = math.exp(epsilon), float(delta)
    one = np.array([d, (1 - d) * e / (1 + e), (1 - d) / (1 + e), 0])
    other = one[::-1]
    right = np.maximum(one, other).sum() / 2
    said = int(re.findall(r"at most (\d+) in 100", guess)[0]) / 100
    assert right <= said < right + 0.01 + 1e-9
    bound = float(re.findall(r"a factor of ([\d.]+)", odds)[0])
    with np.errstate(divide="ignore"):
        beyond = one[one / other > bound].sum()
    rest = re.findall(r"a chance of at most (?:1 in ([\d,]+)|(\d+) in 100)", odds)[0]
    stated = 1 / int(rest[0].replace(",", "")) if rest[0] else int(rest[1]) / 100
    assert beyond <= stated
    assert 2 * d <= stated
    # More than exp(epsilon) alone does happen with a chance of more than none.
    assert one[one / np.maximum(other, 1e-300) > e * (1 + 1e-9)].sum() > 0


def test_users_are_told_of_groups_and_of_what_the_card_counts() -> None:
    # Kills: the smallest group's epsilon, a count on the card that odds seem to cover.
    total = UserPrivacy(Fraction(4), Fraction(1, 10**6), (("a", Fraction(1)), ("b", Fraction(4))))
    counted, silent = in_words(total), in_words(total, counted=False)
    assert counted[:-1] == silent
    assert counted[-1] == "The numbers of records on the card are apart from this."
    assert "of the group with the largest epsilon" in silent[0]
    assert "99 in 100" in silent[0]


def test_words_are_told_by_their_distance() -> None:
    # exp(10 d) is 10 at .2302 and 1,000 at .6907. Kills: an epsilon of words told as one of
    # documents; distances rounded up.
    meaning = Meaning.model_construct(mean_distance=6.3, loss_at_mean=63.0)
    by_word = in_words(MetricPrivacy("Euclidean distance", Fraction(10), "word"), meaning)
    assert "exp(10 * d)" in by_word[0]
    assert by_word[0].endswith("10 at 0.23 and 1,000 at 0.69.")
    assert "two words of the index at the mean distance (6.3)" in by_word[1]
    assert "a factor of 10^28" in by_word[1]
    (of_all,) = in_words(MetricPrivacy("Euclidean distance", Fraction(9), "document"), meaning)
    assert "two documents of one length, all of whose words differ" in of_all


def test_a_guarantee_in_one_number() -> None:
    # Kills: epsilon for its exponential, a factor where delta allows more, words of another unit.
    value, what = in_short(LimitedPrecision(10, Fraction(2), PURE))
    assert value == "7.39 times"
    assert what.startswith(
        "is the most by which somebody's odds change as to which of two versions"
    )
    value, what = in_short(UserPrivacy(Fraction(1), Fraction(1, 1000)))
    assert value == "74 in 100"
    assert what == "is the largest chance of a right guess whether one user's documents are there"
    words = MetricPrivacy("Euclidean distance", Fraction(10), "word")
    assert in_short(words)[0] == "exp(10 d) times"
    assert in_short(words)[1].endswith("as to two words at a distance of d")
