"""The example of a guarantee: which change it speaks of, and numbers that never understate."""

from __future__ import annotations

import math
import re
from fractions import Fraction

import pytest

from quietcorpus.mechanisms.accounting.guarantees import (
    DocumentPrivacy,
    Guarantee,
    LimitedPrecision,
    MetricPrivacy,
    SentencePrivacy,
    UserPrivacy,
)
from quietcorpus.pipelines.card.page import example

EPSILON, DELTA = Fraction(7, 3), Fraction(1, 3 * 10**6)
BOTH = (DocumentPrivacy(EPSILON, DELTA), UserPrivacy(EPSILON, DELTA))


@pytest.mark.parametrize(
    ("precision", "said"),
    [
        (1, "one of its words tells something of you. Had you left it out, whatever"),
        (2, "one of its words tells something of you. Had you written another in its place, "),
        (3, "one of its words tells something of you. Had you written another in its place, "),
        (11, "5 of its words tell something of you. Had you written others in their place, "),
    ],
)
def test_no_more_words_are_replaced_than_the_precision_hides(precision: int, said: str) -> None:
    # A replaced word is one removed and one added. Kills: N replaced words.
    assert said in example(LimitedPrecision(precision, EPSILON))


@pytest.mark.parametrize(
    "total", [LimitedPrecision(2, EPSILON), SentencePrivacy(EPSILON), *BOTH], ids=repr
)
def test_the_factor_is_not_understated(total: Guarantee) -> None:
    # Kills: a factor that is rounded down.
    stated = re.search(r"at most ([0-9.]+) times as large or as small", example(total))
    assert stated
    assert math.exp(EPSILON) <= float(stated[1]) <= math.exp(EPSILON) * 1.01 + 1


@pytest.mark.parametrize("total", [LimitedPrecision(2, EPSILON, DELTA), *BOTH], ids=repr)
def test_a_delta_is_told_and_not_understated(total: Guarantee) -> None:
    # Kills: an example that keeps a delta to itself.
    stated = re.search(r", but for a chance of ([0-9.e-]+)\.$", example(total))
    assert stated
    assert Fraction(stated[1]) >= DELTA


def test_no_delta_is_made_up() -> None:
    assert "chance of" not in example(LimitedPrecision(2, EPSILON)).replace("a chance that", "")


def test_words_and_documents_of_a_metric_are_told_apart() -> None:
    # Kills: the whole document's distance for a mean, or a mean for a word's.
    word = example(MetricPrivacy("distance", EPSILON))
    assert "where d is how far apart the two are." in word
    assert "exp(2.33334 * d) times" in word
    document = example(MetricPrivacy("distance", EPSILON, "document"))
    assert "all of its words were others" in document
    assert "where d is how far apart they are on average." in document
