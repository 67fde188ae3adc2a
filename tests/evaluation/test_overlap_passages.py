"""Passages, against Sellers's whole table."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quietcorpus.evaluation.overlap import is_passage

WORDS = st.lists(st.integers(0, 3), max_size=12)


def found(short: list[int], long: list[int], edits: int) -> bool:
    column = np.full(len(short) + 1, -7)  # whatever an earlier pair left
    return bool(is_passage(np.array(short, np.uint64), np.array(long, np.uint64), edits, column))


def least_edits(short: list[int], long: list[int]) -> int:
    """Sellers's table, column after column, in full."""
    column = list(range(len(short) + 1))
    least = column[-1]
    for word in long:
        before, column = column, [0]
        for row, own in enumerate(short, 1):
            column.append(min(before[row - 1] + (own != word), before[row] + 1, column[-1] + 1))
        least = min(least, column[-1])
    return least


@settings(deadline=None)  # the kernel is compiled
@given(st.lists(st.integers(0, 3), min_size=1, max_size=10), WORDS, st.integers(0, 9))
def test_the_verdict_is_the_whole_table_s(short: list[int], long: list[int], edits: int) -> None:
    # Kills: a column that is cut too early, a value that an earlier column left, an edit too many,
    # a passage that must begin or end with the long text.
    edits = min(edits, len(short) - 1)
    assert found(short, long, edits) == (least_edits(short, long) <= edits)


@pytest.mark.parametrize(
    ("short", "long", "edits", "expected"),
    [
        ([1, 2, 3, 4], [9, 9, 1, 2, 3, 4, 9], 0, True),
        ([1, 2, 3, 4], [9, 1, 2, 5, 4], 0, False),
        ([1, 2, 3, 4], [9, 1, 2, 5, 4], 1, True),  # a word replaced
        ([1, 2, 3, 4], [9, 1, 2, 4], 1, True),  # removed
        ([1, 2, 3, 4], [9, 1, 2, 5, 3, 4], 1, True),  # inserted
        ([1, 2, 3, 4], [9, 1, 5, 2, 5, 3, 4], 1, False),
        ([1, 2, 3, 4], [], 3, False),
    ],
)
def test_edits_by_hand(short: list[int], long: list[int], edits: int, expected: bool) -> None:
    assert found(short, long, edits) == expected
