"""Systematic resampling: exact shares, every start, and only what it can draw."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from quietcorpus.mechanisms.keystream import Keystream, ReleaseKey
from quietcorpus.mechanisms.votes.resampling import Resampling, are_copies, copies, rows_of_strata

ALPHA = 1e-6
WEIGHTS = st.lists(st.integers(0, 40), min_size=1, max_size=6).filter(any)


def stream() -> Keystream:
    return ReleaseKey.fresh().stage("resample", 1)


def by_points(weights: list[int], rows: int, start: int) -> list[int]:
    """The copies, by the definition: points at equal steps on a line of items."""
    total = sum(weights)
    line = [item for item, weight in enumerate(weights) for _ in range(weight * rows)]
    return np.bincount(
        [line[start + j * total] for j in range(rows)], minlength=len(weights)
    ).tolist()


@settings(deadline=None)
@given(WEIGHTS, st.integers(1, 30), st.data())
def test_copies_are_the_points_on_an_items_part_of_the_line(
    weights: list[int], rows: int, data: st.DataObject
) -> None:
    # Kills: an end of an item that counts for the next one, a step or a start of another length.
    start = data.draw(st.integers(0, sum(weights) - 1))
    found = copies(np.array(weights), rows, start)
    assert found.tolist() == by_points(weights, rows, start)
    assert found.sum() == rows
    for weight, own in zip(weights, found.tolist(), strict=True):
        share = Fraction(weight * rows, sum(weights))
        assert math.floor(share) <= own <= math.ceil(share)


@given(WEIGHTS, st.integers(1, 30))
def test_over_all_starts_every_item_has_exactly_its_share(weights: list[int], rows: int) -> None:
    # Kills: a start that is never drawn, or twice.
    total = sum(weights)
    found = sum(copies(np.array(weights), rows, start) for start in range(total))
    assert found.tolist() == [weight * rows for weight in weights]


def test_numbers_beyond_64_bits() -> None:
    # Kills: products that wrap around.
    weights = np.array([1 << 61, 1 << 60, 0, 1 << 60])
    assert copies(weights, 1_000_000, 12345).tolist() == [500_000, 250_000, 0, 250_000]


@pytest.mark.parametrize("weights", [[3, 1, 0, 2], [1, 1], [5], [0, 7, 2]])
def test_what_no_start_gives_is_told(weights: list[int]) -> None:
    # All ways to divide seven rows among the items. Kills: shares that are rounded as they please,
    # a start that is left out, a sum of other rows.
    given, rows = np.array(weights), 7
    possible = {tuple(copies(given, rows, start).tolist()) for start in range(given.sum())}
    for some in product(range(rows + 2), repeat=len(weights)):
        assert are_copies(given, np.array(some), rows) == (some in possible)


def test_strata_get_as_many_rows() -> None:
    weights = np.array([[0, 0], [1, 5], [900, 0], [2, 2]])
    assert rows_of_strata(weights, 8) == [0, 3, 3, 2]
    assert rows_of_strata(weights[:1], 8) == [0]
    assert are_copies(weights[0], np.array([0, 0]), 0)
    assert not are_copies(weights[0], np.array([0, 1]), 0)


def test_a_draw_goes_by_the_weights() -> None:
    # 4,000 rows in two strata. Kills: strata mixed up, one weighed by its votes, an item of no
    # weight, a second draw that is the first.
    weights = np.array([[10, 30, 0], [0, 7, 3]])
    found = Resampling(4_000).draw(weights, stream())
    assert np.bincount(found, minlength=6).tolist() == [500, 1500, 0, 0, 1400, 600]
    assert not np.array_equal(found, Resampling(4_000).draw(weights, stream()))


def test_a_draw_repeats_itself_by_key_and_weights() -> None:
    own, weights = stream(), np.array([[10, 31, 5]])
    first = Resampling(101).draw(weights, own)
    np.testing.assert_array_equal(Resampling(101).draw(weights, own), first)
    other = Resampling(101).draw(np.array([[10, 31, 6]]), own)
    assert not np.array_equal(first, other)


def test_starts_are_uniform_and_rows_in_random_order() -> None:
    # One row of the weights 1 and 3: the first item in Binomial(4,000, 1/4). Of two rows, one of
    # each item, the first is either with 1/2. Kills: a start at zero, rows in the items' order.
    # Control: a coin of 1/3 is refused.
    draws = 4_000
    key = ReleaseKey.fresh()
    streams = [key.stage("resample", 1, number=number) for number in range(draws)]
    first = sum(int(Resampling(1).draw(np.array([[1, 3]]), own)[0] == 0) for own in streams)
    order = sum(int(Resampling(2).draw(np.array([[1, 1]]), own)[0] == 0) for own in streams)
    for seen, chance in ((first, 1 / 4), (order, 1 / 2)):
        low, high = stats.binom.ppf([ALPHA / 4, 1 - ALPHA / 4], draws, chance)
        assert low <= seen <= high
        assert not low <= draws / 3 <= high


def test_nothing_to_draw_from() -> None:
    assert Resampling(9).draw(np.zeros((2, 3), np.int64), stream()).tolist() == []
