"""The names of candidates: one for each, or a refusal before anything is encoded."""

from __future__ import annotations

import pyarrow as pa
import pytest

from quietcorpus.pipelines.prepare.candidates import _check_names, _names
from quietcorpus.transforms.errors import InputError


def test_names_have_the_candidates_numbers() -> None:
    columns = pa.table({"label": ["a", "a"], "key": [7, 5]})
    found = _names(columns, "key", ["label"], None)
    assert found.to_pylist() == [
        {"candidate": 0, "id": 7, "label": "a"},
        {"candidate": 1, "id": 5, "label": "a"},
    ]
    assert _names(columns, None, ["label"], None).column_names == ["candidate", "label"]
    assert _names(columns, None, [], None) is None
    told = _names(columns, None, [], pa.array(["x"] * len(columns)))
    assert told.column_names == ["candidate", "text"]


@pytest.mark.parametrize("keys", [["a", "a"], ["a", None]])
def test_ids_that_name_nothing(keys: list[str | None]) -> None:
    with pytest.raises(InputError, match=r"^id: the column 'key' lacks a value, or repeats one"):
        _names(pa.table({"key": keys}), "key", [], None)


@pytest.mark.parametrize("keep", [["candidate"], ["id"], ["label", "label"]])
def test_columns_that_would_be_there_twice(keep: list[str]) -> None:
    with pytest.raises(InputError, match=f"^keep: '{keep[-1]}' is a name that candidates use"):
        _check_names(keep, keep_text=False)


def test_a_kept_text_has_its_name_alone() -> None:
    # Kills: a column of the source's in the place of the text.
    with pytest.raises(InputError, match=r"^keep: 'text' is a name that candidates use"):
        _check_names(["text"], keep_text=True)
    _check_names(["text"], keep_text=False)
