"""The records of a ledger in a folder, file by file, and whether they open."""

from __future__ import annotations

from pathlib import Path

import ledger_requests
import pytest

from quietcorpus.pipelines.ledger.book import Ledger
from quietcorpus.pipelines.ledger.records import digest
from quietcorpus.pipelines.ledger.refusals import Request
from quietcorpus.transforms.errors import InputError

RECORDS = 6
PLACE = "/nowhere/ledger"
TERMS = ledger_requests.terms("/nowhere/corpus")


def request(release: str) -> Request:
    """Return a request that any copy of the ledger takes."""
    return ledger_requests.request(PLACE, release, epsilon=1)


def six_records(folder: Path) -> None:
    """Write a ledger of every kind of record."""
    ledger = Ledger.init(str(folder), TERMS)
    first = ledger.reserve(request("a"))
    ledger.reserve(request("b"))
    ledger.commit(first, "0" * 32, "0" * 64)
    ledger.cancel("b", "a trial")
    ledger.reserve(request("c"))


def record(folder: Path, number: int) -> Path:
    return folder / f"{number:08d}.json"


def seal(folder: Path, number: int) -> Path:
    return folder / f"{number:08d}.sha256"


def reseal(folder: Path, number: int) -> None:
    path = record(folder, number)
    seal(folder, number).write_text(f"{digest(path.read_bytes())}  {path.name}\n")


def assert_damaged(folder: Path) -> str:
    """Opening says so in one line, and writes nothing."""
    before = sorted(folder.iterdir())
    with pytest.raises(InputError) as caught:
        Ledger.open(str(folder))
    said = str(caught.value)
    assert said.startswith(f"ledger: {folder} is damaged: "), said
    assert "\n" not in said
    assert sorted(folder.iterdir()) == before
    return said


def assert_whole(folder: Path, count: int = RECORDS) -> Ledger:
    ledger = Ledger.open(str(folder))
    assert len(ledger.records) == count
    return ledger
