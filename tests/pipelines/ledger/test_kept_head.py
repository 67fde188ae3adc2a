"""The head that is kept outside of a ledger: when it is written, and what it refuses."""

from __future__ import annotations

import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from ledger_requests import CARD, RUN, Refused, files, request, terms

from quietcorpus.pipelines.ledger.book import Ledger
from quietcorpus.pipelines.ledger.check import checked
from quietcorpus.pipelines.ledger.kept_head import LEDGER_HEAD, head_at
from quietcorpus.pipelines.ledger.key_pinning import Trust
from quietcorpus.transforms.errors import InputError


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a head, which is not there yet."""
    monkeypatch.setenv(LEDGER_HEAD, str(tmp_path / "kept" / "head"))
    return tmp_path / "kept" / "head"


@pytest.fixture
def guarded(kept: Path, tmp_path: Path) -> str:
    """A new ledger whose head is kept."""
    Ledger.init(str(tmp_path / "ledger"), terms(tmp_path / "corpus"))
    return str(tmp_path / "ledger")


def test_each_record_is_covered_before_the_next_step(guarded: str, kept: Path) -> None:
    # Kills: a head that is kept once a release is published, or at a run's beginning alone.
    for number, act in enumerate(
        (
            lambda ledger: ledger.reserve(request(guarded, "a")),
            lambda ledger: ledger.commit(ledger.state.by_release["a"], RUN, CARD),
            lambda ledger: ledger.reserve(request(guarded, "b")),
            lambda ledger: ledger.cancel("b", "a trial"),
        ),
        start=1,
    ):
        ledger = Ledger.open(guarded)
        act(ledger)
        assert kept.read_text() == f"{ledger.head}\n"
        assert ledger.head.startswith(f"{number}:")


def test_a_run_that_died_before_it_kept_the_head(guarded: str, kept: Path) -> None:
    # Kills: a repetition that finds its reservation, and keeps no head; a ledger that is refused
    # because it has grown since.
    before = kept.read_text()
    Ledger.open(guarded).reserve(request(guarded, "a"))
    kept.write_text(before)
    ledger = Ledger.open(guarded)
    ledger.reserve(request(guarded, "a"))
    assert len(ledger.records) == 2
    assert kept.read_text() == f"{ledger.head}\n"


def test_a_later_head_is_not_replaced(guarded: str, kept: Path) -> None:
    # Kills: a slow launcher that puts the head back to its own record.
    slow = Ledger.open(guarded)
    slow.reserve(request(guarded, "a"))
    Ledger.open(guarded).reserve(request(guarded, "b"))
    late = kept.read_text()
    slow.keep_head()
    assert kept.read_text() == late
    assert late.startswith("2:")


def test_launchers_at_once_keep_the_last_head(guarded: str, kept: Path) -> None:
    # Kills: a file that two write at once: torn, or the older one of two heads.
    def run(number: int) -> None:
        ledger = Ledger.open(guarded)
        found = ledger.reserve(request(guarded, f"r{number}", 1))
        ledger.commit(found, RUN, CARD)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(run, range(10)))
    assert kept.read_text() == f"{Ledger.open(guarded).head}\n"


def test_no_file_is_no_head(guarded: str, kept: Path) -> None:
    # Kills: a ledger that was lost together with its head, and is taken for a new one; a way out
    # that takes a ledger which lost records.
    ledger = Ledger.open(guarded)
    ledger.reserve(request(guarded, "a"))
    kept.unlink()
    with Refused(guarded, f"{LEDGER_HEAD}: expected a ledger's head at {kept}, got no file; begin"):
        Ledger.open(guarded)
    found = checked(guarded, Trust.configured(begins=True), keeps_head=True)
    assert kept.read_text() == f"{found.head}\n"
    Ledger.open(guarded)
    Path(guarded, "00000001.json").unlink()
    Path(guarded, "00000001.sha256").unlink()
    with pytest.raises(InputError, match="ends with record 0, and had record 1"):
        checked(guarded, Trust.configured(begins=True), keeps_head=True)


@pytest.mark.parametrize("content", ["1:abc\n", f"0:{'g' * 64}\n", f"01:{'0' * 64}\n"])
def test_a_file_that_holds_no_head(guarded: str, kept: Path, content: str) -> None:
    # Kills: a torn file that is taken for none.
    kept.write_text(content)
    with Refused(guarded, "got another content"):
        Ledger.open(guarded)
    assert kept.read_text() == content


def test_the_head_of_another_ledger(guarded: str, kept: Path, tmp_path: Path) -> None:
    # Kills: one file for two ledgers, of which neither is then covered.
    other = str(tmp_path / "other")
    with pytest.raises(InputError, match=re.escape(f"got the head of another one at {kept}")):
        Ledger.init(other, terms(tmp_path / "corpus"))
    assert not Path(other).exists()
    with head_at(str(tmp_path / "head-of-other")):
        Ledger.init(other, terms(tmp_path / "corpus"))
    with Refused(other, "record 0 of .*/other is another one than it was"):
        Ledger.open(other)


def test_a_head_that_cannot_be_kept_ends_the_run(guarded: str, kept: Path) -> None:
    # Kills: a run that goes on to publish what no head covers.
    ledger = Ledger.open(guarded)
    kept.unlink()
    kept.mkdir()
    with pytest.raises(InputError, match="cannot be written"):
        ledger.reserve(request(guarded, "a"))


def test_records_of_another_history_are_refused(guarded: str, tmp_path: Path) -> None:
    # Kills: a comparison of numbers alone: the restored ledger has as many records again.
    backup = shutil.copytree(guarded, tmp_path / "backup")
    Ledger.open(guarded).reserve(request(guarded, "a"))
    shutil.rmtree(guarded)
    shutil.copytree(backup, guarded)
    with head_at(str(tmp_path / "second")):
        checked(guarded, Trust.configured(begins=True), keeps_head=True)
        Ledger.open(guarded).reserve(request(guarded, "b"))
    before = files(guarded)
    with pytest.raises(InputError, match=r"record 1 of .* is another one than it was"):
        Ledger.open(guarded)
    assert files(guarded) == before
