"""Errors never quote an apparent column name, which may be private text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import Workspace


def test_a_csv_file_without_a_header(workspace: Workspace) -> None:
    # Kills: listing the columns that a CSV file "has", which is its first record.
    (workspace.input / "corpus.csv").write_text("John Smith,I was diagnosed\nJane Roe,fine\n")
    done = workspace.run("release", str(workspace.spec({"input": {"path": "input/*.csv"}})))
    assert done.returncode == 2
    assert "has no column 'text'; check the spelling" in done.stderr
    assert "Smith" not in done.stderr + done.stdout
    assert "diagnosed" not in done.stderr + done.stdout


def test_json_keyed_by_content(workspace: Workspace) -> None:
    workspace.json_lines([{"John Smith owes": 5}])
    done = workspace.run("release", str(workspace.spec()))
    assert done.returncode == 2
    assert "Smith" not in done.stderr + done.stdout


@pytest.mark.parametrize("kind", ["histogram", "bag-of-words"])
def test_a_rejected_record_counts_nowhere(workspace: Workspace, kind: str) -> None:
    # A record whose kept column is not UTF-8 is rejected by every pass. Kills: a counting pass that
    # reads fewer columns, and so rejects fewer records, than the pass that releases.
    import pyarrow as pa
    import pyarrow.parquet as pq

    bad = pa.array([b"fine", b"fine", b"\xff"]).cast(pa.binary())
    column = pa.Array.from_buffers(pa.string(), 3, bad.buffers())
    workspace.parquet({"text": ["world", "world", "quiet " * 5000], "note": column})
    mechanism = {
        "kind": kind,
        "precision": 1,
        "epsilon": 50,
        "vocabulary": {"public": "vocabulary.txt"},
    }
    if kind == "bag-of-words":
        mechanism |= {
            "histogram_epsilon": 50,
            "compression": {"method": "frequency", "size": 2},
        }
    changes = {
        "input": {"path": "input/*.parquet", "keep": ["note"]},
        "rejects": {"path": "rejects", "max_share": 0.5},
        "mechanism": mechanism,
    }
    workspace.release(changes)
    table = pq.read_table(workspace.output / "vocabulary.parquet")
    weights = dict(zip(table["term"].to_pylist(), table["weight"].to_pylist(), strict=True))
    assert weights["world"] == 2
    assert weights["quiet"] == 0
