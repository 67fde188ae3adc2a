"""A release in memory is what its card says, or an error in one line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from small_specs import spec_of

import quietcorpus as qc

if TYPE_CHECKING:
    from tests.conftest import Workspace


@pytest.fixture
def release(workspace: Workspace) -> Path:
    """A release of two data files."""
    workspace.json_lines(["hello quiet world", ""], "a.jsonl")
    workspace.json_lines(["quiet island"], "b.jsonl")
    workspace.release(
        {"input.path": "input/[ab].jsonl", "mechanism.precision": 1, "mechanism.epsilon": 50}
    )
    return workspace.output


def test_the_tables_of_a_release(release: Path) -> None:
    # Kills: rows of the first file alone, words of other terms, a type that changes unasked.
    loaded = qc.load(release)
    assert loaded.card == qc.verify(release)
    assert set(loaded.tables) == {"data", "vocabulary"}
    assert loaded.rows is loaded.tables["data"]
    assert loaded.rows.schema.field("terms").type == pa.list_(pa.int32())
    assert loaded.tables["vocabulary"].equals(pq.read_table(release / "vocabulary.parquet"))
    worded = qc.load(release, words=True).rows
    assert worded.schema.field("terms").type == pa.list_(pa.string())
    assert worded.drop_columns("terms").equals(loaded.rows.drop_columns("terms"))
    words = sorted(worded["terms"].to_pylist())
    assert words == [[], ["hello", "quiet", "world"], ["island", "quiet"]]


def test_a_file_that_is_not_the_cards(release: Path) -> None:
    # Kills: tables that are read without a look at their digests.
    path = release / "vocabulary.parquet"
    table = pq.read_table(path)
    pq.write_table(table.set_column(1, "term", pa.array(["x"] * len(table))), path)
    with pytest.raises(qc.InputError, match=r"vocabulary\.parquet: not the file that"):
        qc.load(release, words=True)
    path.unlink()
    with pytest.raises(qc.InputError, match=r"vocabulary\.parquet: missing or unreadable"):
        qc.load(release)


def test_what_cannot_be_loaded(workspace: Workspace) -> None:
    with pytest.raises(qc.InputError, match=r"no release here: release\.json is missing"):
        qc.load(workspace.folder)
    histogram = {"kind": "histogram", "precision": 2, "epsilon": 4}
    given = spec_of(mechanism=histogram | {"vocabulary": {"public": "vocabulary.txt"}})
    workspace.release({"mechanism": given["mechanism"]})
    loaded = qc.load(workspace.output)
    assert loaded.rows is loaded.tables["vocabulary"]
    with pytest.raises(qc.InputError, match="words: rows of the kind histogram have no numbers of"):
        qc.load(workspace.output, words=True)
    with pytest.raises(qc.InputError, match="words: 1 is neither True nor False"):
        qc.load(workspace.output, words=1)  # type: ignore[arg-type]
