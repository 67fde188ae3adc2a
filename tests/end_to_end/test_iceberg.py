"""The example that releases an Iceberg table to another, on a real catalogue."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from machine import ROOT
from pyiceberg.catalog import load_catalog

if TYPE_CHECKING:
    from tests.conftest import Workspace


@pytest.mark.slow
def test_a_snapshot_is_released_to_a_table(workspace: Workspace) -> None:
    # Kills: rows that were deleted from the table, whose files still hold them; a second table, or
    # a second draw, when it is run again; columns that nobody named.
    place = {"uri": f"sqlite:///{workspace.folder}/catalogue.db", "type": "sql"}
    place["warehouse"] = f"file://{workspace.folder}/warehouse"
    catalog = load_catalog("default", **place)
    for namespace in ("private", "released"):
        catalog.create_namespace(namespace)
    rows = {
        "ticket": [f"T-{number}" for number in range(40)],
        "product": ["card", "loan"] * 20,
        "text": ["hello quiet world"] * 40,
        "secret": ["x"] * 40,
    }
    table = catalog.create_table("private.comments", schema=pa.table(rows).schema)
    table.append(pa.table(rows))
    table.delete("ticket = 'T-7'")
    table.append(pa.table({**{name: own[:1] for name, own in rows.items()}, "ticket": ["T-40"]}))
    for folder in ("staging", "releases"):
        (workspace.folder / folder).mkdir()
    variables = {f"PYICEBERG_CATALOG__DEFAULT__{key.upper()}": own for key, own in place.items()}
    command = [sys.executable, "-P", str(ROOT / "examples" / "iceberg.py")]
    command += ["private.comments", "released.comments", "vocabulary.txt", "staging", "releases"]

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=workspace.folder,
            env={**workspace.environment, **variables},
            capture_output=True,
            text=True,
            check=False,
        )

    done = run()
    assert done.returncode == 0, done.stderr
    made = catalog.load_table("released.comments")
    assert made.properties["guarantee"] in done.stdout
    found = made.scan().to_arrow()
    assert found.column_names == ["id", "product", "terms", "counts"]
    assert len(found) == 40
    assert os.listdir(workspace.folder / "warehouse" / "released" / "comments") == ["metadata"]
    # Again, once the table was lost: the same release, and no other draw.
    catalog.drop_table("released.comments")
    assert run().returncode == 0
    assert catalog.load_table("released.comments").scan().to_arrow().equals(found)
    assert "released.comments is there already" in run().stderr
