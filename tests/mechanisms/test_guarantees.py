"""Guarantees as values: exact composition, and rounding that never flatters."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.guarantees import (
    LimitedPrecision,
    MetricPrivacy,
    Spending,
    ceiling,
    compose,
    round_down,
    round_up,
)

amounts = st.fractions(0, 100, max_denominator=10**12)
pairs = st.lists(st.tuples(amounts, amounts), min_size=1, max_size=6)


@given(pairs=pairs, precision=st.integers(1, 10**6))
def test_composition_is_the_exact_sum(
    pairs: list[tuple[Fraction, Fraction]], precision: int
) -> None:
    # Kills: a sum in floats, delta forgotten, a stage counted twice or left out.
    spendings = [
        Spending(f"stage {i}", LimitedPrecision(precision, epsilon, delta))
        for i, (epsilon, delta) in enumerate(pairs)
    ]
    total = compose(spendings)
    assert total == LimitedPrecision(
        precision, sum(e for e, _ in pairs), sum((d for _, d in pairs), Fraction(0))
    )
    assert total == compose(reversed(spendings))
    assert isinstance(total.epsilon, Fraction)
    assert isinstance(total.delta, Fraction)


def test_tenths_add_up_without_floats() -> None:
    tenth = Spending("s", LimitedPrecision(1, Fraction(1, 10)))
    assert compose([tenth] * 3).epsilon == Fraction(3, 10) != Fraction(0.1 + 0.2)


def test_mixed_precision_is_refused() -> None:
    # Kills: composition under the larger, or the first, precision.
    one, two = LimitedPrecision(1, Fraction(1)), LimitedPrecision(2, Fraction(1))
    with pytest.raises(ValueError, match="different precision"):
        one + two
    with pytest.raises(ValueError, match="different precision"):
        compose([Spending("a", one), Spending("b", two)])


def test_no_stages_have_no_guarantee() -> None:
    with pytest.raises(ValueError, match="unpack"):
        compose([])


@given(value=st.fractions(0, 10**9))
def test_round_up_is_the_nearest_float_not_below(value: Fraction) -> None:
    # Kills: rounding to nearest, and rounding up twice.
    rounded = round_up(value)
    assert Fraction(rounded) >= value
    assert rounded == 0 or Fraction(math.nextafter(rounded, 0)) < value


@given(value=st.floats(0, 1e300))
def test_round_up_keeps_floats(value: float) -> None:
    assert round_up(Fraction(value)) == value


def test_round_up_of_what_no_float_holds() -> None:
    assert round_up(Fraction(1, 10)) == 0.1  # The float 0.1 is above the rational.
    assert round_up(Fraction(3, 10)) > 0.3 - 1e-17
    assert Fraction(0.3) < Fraction(3, 10) < Fraction(round_up(Fraction(3, 10)))
    assert round_up(Fraction(1, 2**1200)) > 0  # Kills: a tiny delta printed as zero.


@pytest.mark.parametrize(
    ("precision", "words"),
    [
        (1, "at most 1 in L1: 1 token added or removed, or 0 tokens replaced"),
        (2, "at most 2 in L1: 2 tokens added or removed, or 1 token replaced"),
        (11, "at most 11 in L1: 11 tokens added or removed, or 5 tokens replaced"),
    ],
)
def test_adjacency_counts_a_replacement_twice(precision: int, words: str) -> None:
    assert LimitedPrecision(precision, Fraction(1)).adjacency.endswith(words)


def test_a_guarantee_is_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        LimitedPrecision(1, Fraction(1)).epsilon = Fraction(0)  # type: ignore[misc]


@given(value=st.fractions(min_value=0, max_value=10**6), digits=st.integers(1, 12))
def test_printed_numbers_never_understate(value: Fraction, digits: int) -> None:
    # Kills: formatting by :g, which rounds to nearest.
    shown = Fraction(ceiling(value, digits))
    assert value <= shown <= value * (1 + Fraction(10, 10**digits))


@pytest.mark.parametrize(
    ("value", "shown"), [("11/2", "5.5"), ("1/3", "0.333334"), ("1/100000000", "1e-8"), ("5", "5")]
)
def test_printed_numbers_are_short(value: str, shown: str) -> None:
    assert ceiling(Fraction(value)) == shown


@given(value=st.fractions(0, 10**9))
def test_round_down_is_the_nearest_float_not_above(value: Fraction) -> None:
    # Kills: rounding to nearest, which divides noise by more than epsilon.
    rounded = round_down(value)
    assert 0 <= Fraction(rounded) <= value
    assert Fraction(math.nextafter(rounded, math.inf)) > value


@given(
    epsilons=st.lists(amounts, min_size=1, max_size=6), per=st.sampled_from(["word", "document"])
)
def test_metric_privacy_composes_to_the_exact_sum(epsilons: list[Fraction], per: str) -> None:
    # Kills: a sum in floats, the largest epsilon, `per` or the metric lost on the way.
    stages = [MetricPrivacy("m", epsilon, per) for epsilon in epsilons]  # type: ignore[arg-type]
    total = compose(Spending(f"stage {i}", stage) for i, stage in enumerate(stages))
    assert total == MetricPrivacy("m", sum(epsilons, Fraction(0)), per)  # type: ignore[arg-type]
    assert isinstance(total.epsilon, Fraction)


def test_promises_under_different_metrics_do_not_add() -> None:
    # An epsilon per bit is no epsilon per unit of length, and one per word none per document.
    one = MetricPrivacy("m", Fraction(1))
    for other in (MetricPrivacy("n", Fraction(1)), MetricPrivacy("m", Fraction(1), "document")):
        with pytest.raises(ValueError, match="different metrics"):
            one + other
        with pytest.raises(ValueError, match="different metrics"):
            compose([Spending("a", other), Spending("b", one)])


def test_metric_adjacency_names_the_metric() -> None:
    stated = MetricPrivacy("Hamming distance of the words' codes", Fraction(1))
    assert stated.adjacency.endswith("two words are is the Hamming distance of the words' codes")
    assert stated.per == "word"
    with pytest.raises(FrozenInstanceError):
        stated.epsilon = Fraction(0)  # type: ignore[misc]
