"""Days of one corpus whose files differ are one release, whose kept columns have one type."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from quietcorpus.transforms.errors import InputError

if TYPE_CHECKING:
    from tests.conftest import Workspace

KEYS = [uuid.UUID(int=7919 * number) for number in range(6)]


def test_days_that_differ(workspace: Workspace) -> None:
    # Kills: a split whose types cannot be recorded; a shard of two files that cannot be joined; a
    # UUID in one file that is another document than the same one as text in another.
    text, days = ["alpha beta"] * 2, workspace.input
    lists = pa.array([["x"], []], pa.list_(pa.string()))
    tables = {
        "a": {"text": [b"alpha"] * 2, "k": pa.array([k.bytes for k in KEYS[:2]], pa.uuid())},
        "b": {"text": text, "k": list(map(str, KEYS[2:4])), "n": [1 << 40, 2], "tags": lists},
        "c": {"text": text, "k": [str(k) for k in KEYS[4:]], "n": pa.nulls(2), "tags": pa.nulls(2)},
        "d": {"text": pa.nulls(0)},
    }
    tables["a"] |= {"n": pa.array([1, 2], pa.int8()), "tags": pa.array([[], None])}
    for name, columns in tables.items():
        pq.write_table(pa.table(columns), days / f"{name}.parquet")
    (workspace.folder / "words.txt").write_text("alpha\nbeta\n")
    asked = {
        "input": {"path": "input/*.parquet", "id": "k", "keep": ["n", "tags"]},
        "mechanism.vocabulary.public": str(workspace.folder / "words.txt"),
    }
    workspace.release_here(asked)
    found = sorted(workspace.rows(), key=lambda row: (row["n"] or 0, str(row["tags"])))
    assert [row["n"] for row in found] == [None, None, 1, 2, 2, 1 << 40]
    assert {str(row["tags"]) for row in found} == {"None", "[]", "['x']"}
    pq.write_table(
        pa.table({"text": text[:1], "k": [str(KEYS[0])], "n": [1], "tags": lists[:1]}),
        days / "e.parquet",
    )
    with pytest.raises(InputError, match=r"^input.id: the column 'k' repeats values .at least 1 t"):
        workspace.release_here(asked | {"release": "again", "output": "released/again"})
