"""Many processes reserve from one ledger at once, and some of them are killed.

`benchmarks/ledger.py` does 1,000 rounds of each kind.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from ledger_races import PROCESSES
from s3_server import BUCKET, S3Server
from signing_keys import KeyFiles

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parents[1] / "ledger_races.py"


def rounds(place: str, count: int, *options: str, **environment: str) -> list[dict[str, int]]:
    """Return the outcome of each round; fails as the script does."""
    done = subprocess.run(
        [sys.executable, "-P", str(SCRIPT), place, str(count), *options],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=7200,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["fault"] for one in found] == [None] * count
    return found


@pytest.mark.parametrize(
    "options",
    [(), ("--kill",), ("--filter",), ("--filter", "--kill")],
    ids=["unharmed", "killed", "filter", "filter-killed"],
)
def test_a_folder(tmp_path: Path, options: tuple[str, ...]) -> None:
    # Kills: a check of the cap on a state that is old by the time of writing, two writers of one
    # number, a reservation that is told and lost, a ledger that a killed writer leaves unusable.
    for one in rounds(str(tmp_path), 8, *options):
        assert one.get("reserved", 0) + one.get("refused", 0) + one.get("killed", 0) == PROCESSES
        assert one.get("killed", 0) == 0 or "--kill" in options


def test_a_signed_ledger(tmp_path: Path) -> None:
    # Kills: the same, where each writer signs what it writes: of two that sign one number, the
    # store takes one, and the other signs anew.
    key = KeyFiles(tmp_path, "key").private
    rounds(str(tmp_path / "races"), 8, "--filter", "--kill", QUIETCORPUS_LEDGER_KEY_FILE=key)


@pytest.mark.nightly
@pytest.mark.parametrize("options", [("--filter",), ("--filter", "--kill")], ids="".join)
def test_many_rounds_under_a_filter(tmp_path: Path, options: tuple[str, ...]) -> None:
    # Kills: the same, where it happens once in a thousand rounds.
    rounds(str(tmp_path), 1000, *options)


@pytest.mark.parametrize("options", [(), ("--kill",)], ids=["unharmed", "killed"])
def test_an_object_store(s3: S3Server, options: tuple[str, ...]) -> None:
    # Kills: the same, where an answer may be lost and a write be told twice.
    kind = "-".join(options).strip("-") or "unharmed"
    rounds(f"s3://{BUCKET}/races-{kind}", 1, *options, **s3.environment)


def test_a_signed_ledger_in_an_object_store(tmp_path: Path, s3: S3Server) -> None:
    # Kills: a signature that differs when a write is repeated whose answer was lost.
    key = KeyFiles(tmp_path, "key").private
    signed = s3.environment | {"QUIETCORPUS_LEDGER_KEY_FILE": key}
    rounds(f"s3://{BUCKET}/races-signed", 1, "--filter", **signed)
