"""A canary in records that are rejected, and the search that finds canaries where they are.

`test_every_kind.py` has a canary in a release of every kind.
"""

from __future__ import annotations

import base64
import gzip
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from canaries import (
    CANARY,
    assert_unseen,
    forms,
    refused_without_a_word,
)

if TYPE_CHECKING:
    from tests.conftest import Workspace

OTHERS = ["quiet world hello island alpha"] * 60


def test_a_malformed_line_tells_nothing(workspace: Workspace) -> None:
    malformed = ('{"text": "' + CANARY).encode()
    workspace.json_lines([*OTHERS, malformed, *OTHERS])
    refused_without_a_word(workspace, {"rejects": {"path": "rejects", "max_share": 0}}, "1")
    assert list((workspace.folder / "rejects").rglob("*.jsonl"))


def test_too_many_rejects_tell_nothing(workspace: Workspace) -> None:
    lines = [{"text": [CANARY]}, {"text": None, "note": CANARY}, {"note": CANARY}]
    workspace.json_lines(["quiet", *lines, CANARY.encode(), b'{"text": "' + b"\xff" * 9 + b'"}'])
    refused_without_a_word(workspace, {"rejects": {"path": "rejects"}}, "1")


@pytest.mark.slow
def test_an_unconfigured_key_is_not_written_either(workspace: Workspace) -> None:
    # The fresh key is unknown here, but its variable must not show up with a value.
    spec = str(workspace.spec())
    environment = {"QUIETCORPUS_MASTER_KEY": None}
    arguments = ("release", spec, "--workers", "2", "--log-level", "DEBUG")
    done = workspace.run(*arguments, environment=environment)
    assert done.returncode == 0
    assert "QUIETCORPUS_MASTER_KEY" not in done.stdout + done.stderr


@pytest.mark.parametrize("planted", ["raw", "upper", "hex", "base64", "utf16", "parquet", "gzip"])
def test_the_search_finds_what_is_there(tmp_path: Path, planted: str) -> None:
    # The negative control of all tests above.
    secret = "vermilionfinch"
    path = tmp_path / "file"
    match planted:
        case "parquet":
            pq.write_table(pa.table({"x": [f"a {secret}"]}), path, compression="zstd")
        case "gzip":
            path.write_bytes(gzip.compress(f"a {secret} b".encode()))
        case _:
            raw = f"abcd {secret} b".encode()
            written = {
                "raw": raw,
                "upper": raw.upper(),
                "hex": raw.hex().encode(),
                "base64": base64.b64encode(raw),
                "utf16": raw.decode().encode("utf-16"),
            }
            path.write_bytes(written[planted])
    with pytest.raises(AssertionError):
        assert_unseen(forms(secret), tmp_path, tmp_path / "input")
