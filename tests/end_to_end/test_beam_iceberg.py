"""The example of a pipeline from an Iceberg table to another, by Beam's own Iceberg transforms.

They are Java's. What `make iceberg` builds is looked for under `build/`, or under
$QUIETCORPUS_CLUSTERS; without it, the test is skipped, or fails with
QUIETCORPUS_REQUIRE_CLUSTERS=1. The tables are made and read by pyiceberg, which shares no code with
them.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from machine import ROOT, free_ports, wait_for
from pyiceberg.catalog import load_catalog
from pyiceberg.table import StaticTable
from running_clusters import PATIENCE_SECONDS, found

if TYPE_CHECKING:
    from tests.conftest import Workspace

pytestmark = pytest.mark.slow

TEXTS = [f"the president said {number} people were killed" for number in range(40)]


def listens(port: int) -> bool:
    """Return whether somebody listens at a port of the loopback."""
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def service(tmp_path: Path) -> Iterator[str]:
    """The address of a service for one pipeline, on the loopback alone."""
    jar = found("iceberg/expansion-service.jar", "iceberg")
    (port,) = free_ports(1)
    command = ["java", "-Xmx512m", "-jar", str(jar), str(port), "--alsoStartLoopbackWorker"]
    with (tmp_path / "service.log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        wait_for(lambda: listens(port), process, PATIENCE_SECONDS)
        yield f"127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def table_in_folders(warehouse: Path, rows: pa.Table) -> None:
    """Make the table `private.complaints` where a catalogue of folders looks for it."""
    at = warehouse / "private" / "complaints"
    catalogue = load_catalog("made", type="in-memory", warehouse=warehouse.as_uri())
    catalogue.create_namespace("private")
    properties = {"format-version": "2"}
    table = catalogue.create_table(
        "private.complaints", rows.schema, at.as_uri(), properties=properties
    )
    table.append(rows)
    table.delete("complaint_id = 'C7'")
    last = table.metadata_location.removeprefix("file://")
    shutil.copy(last, at / "metadata" / "v1.metadata.json")
    (at / "metadata" / "version-hint.text").write_text("1")


def read_table(warehouse: Path, name: str) -> pa.Table:
    """Read a table of a catalogue of folders."""
    metadata = warehouse / name.replace(".", "/") / "metadata"
    version = (metadata / "version-hint.text").read_text().strip()
    table = StaticTable.from_metadata((metadata / f"v{version}.metadata.json").as_uri())
    return table.scan().to_arrow()


@pytest.mark.nightly
def test_from_a_table_to_a_table(workspace: Workspace, word_index: Path, service: str) -> None:
    # Kills: rows of which Java's schema hides a field; released rows that Java cannot take; a row
    # that was deleted from the table, whose file still holds it; a column that nobody named.
    rows = pa.table(
        {
            "complaint_id": [f"C{number}" for number in range(40)],
            "product": ["card", "loan"] * 20,
            "narrative": TEXTS,
            "secret": ["zqxcanary"] * 40,
        }
    )
    warehouse = workspace.folder / "warehouse"
    table_in_folders(warehouse, rows)
    example = ROOT / "examples" / "own_pipeline_iceberg.py"
    command = [sys.executable, "-P", str(example), "private.complaints", str(word_index)]
    command += ["released.complaints", "warehouse", service, "--runner=FnApiRunner"]
    done = subprocess.run(
        command,
        cwd=workspace.folder,
        env=workspace.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    released = read_table(warehouse, "released.complaints")
    assert sorted(released.column_names) == ["id", "product", "text"]
    assert len(released) == 39
    assert sorted(released["product"].to_pylist()) == ["card"] * 20 + ["loan"] * 19
    assert all(len(text.split()) == 6 for text in released["text"].to_pylist())
    assert not set(released["id"].to_pylist()) & set(rows["complaint_id"].to_pylist())
    (card,) = workspace.folder.glob("card-*.json")
    assert json.loads(card.read_text())["transform"] == "PrivatizeWords"
