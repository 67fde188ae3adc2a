"""Copies of the text in other columns, counted by batches."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from quietcorpus.transforms.reading.copies import Copies
from quietcorpus.transforms.reading.documents import Documents

TEXT = "I wrote to the bank on Monday, and nobody answered!"


def counted(texts: list[str], values: pa.Array) -> Copies:
    columns = pa.table({"note": values})
    rows = np.arange(len(texts))
    return Copies.of(Documents("", rows, pa.array(texts, pa.large_string()), columns), ["note"])


def test_rows_without_text_or_value_do_not_count() -> None:
    # Kills: a share of all rows, among which empty ones hide the copies.
    found = counted([TEXT, "", TEXT, " !"], pa.array([TEXT, TEXT, None, TEXT]))
    assert (found.rows, found.found) == ({"note": 1}, {"note": 1})


@pytest.mark.parametrize("copies", [4, 5])
def test_one_in_twenty_is_too_many(copies: int) -> None:
    # Kills: `>` for `>=`, another share, and a sum that forgets a batch.
    values = [TEXT] * copies + ["loan"] * (100 - copies)
    batches = (counted([TEXT] * 50, pa.array(part)) for part in (values[:50], values[50:]))
    total = sum(batches, start=Copies())
    assert (total.rows["note"], total.found["note"]) == (100, copies)
    assert total.too_many == (["note"] if copies == 5 else [])


@pytest.mark.parametrize(
    ("text", "value", "found"),
    [
        ("no", "No!", 1),
        ("no", "a notary", 0),
        ("x" * 300, "x" * 19, 0),
        ("xy" * 300, "xy" * 10, 1),
        ("xy" * 300, "before " + "xy" * 100, 1),
    ],
    ids=["short", "part of a word", "too short a part", "the beginning", "its first 200 letters"],
)
def test_short_values_are_compared_with_what_they_can_hold(
    text: str, value: str, found: int
) -> None:
    # Kills: a look that leaves out rows whose value could repeat the text.
    assert counted([text], pa.array([value])).found == {"note": found}


def test_columns_without_words_repeat_nothing() -> None:
    for values in (pa.array([1]), pa.array([True]), pa.nulls(1)):
        assert counted(["1"], values).found == {"note": 0}
