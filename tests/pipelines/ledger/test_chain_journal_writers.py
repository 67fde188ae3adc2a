"""Writers of a ledger: one wins, and what a killed one leaves stops no other."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest
from journals import RECORDS, assert_whole, record, request, seal

from quietcorpus.pipelines.ledger.chain import Damaged, Journal
from quietcorpus.pipelines.ledger.records import digest
from quietcorpus.transforms.errors import InputError


def test_what_killed_writers_left_is_passed_over(spoiled: Path) -> None:
    # Kills: half a record that is read, and a leftover that stops all others.
    for name in (".00000006.json.0123", ".probe-0123", ".00000000.json.0123"):
        (spoiled / name).write_bytes(b'{"schema')
    (spoiled / "identifiers").mkdir()
    (spoiled / "identifiers" / "anything").write_bytes(b"?")
    ledger = assert_whole(spoiled)
    ledger.reserve(request("d"))
    assert_whole(spoiled, RECORDS + 1)


def test_a_record_without_its_seal_is_sealed_by_the_next_writer(spoiled: Path) -> None:
    # Kills: a gap in the seals after a crash; a seal that reading makes.
    content = seal(spoiled, RECORDS - 1).read_bytes()
    seal(spoiled, RECORDS - 1).unlink()
    ledger = assert_whole(spoiled)
    assert not seal(spoiled, RECORDS - 1).exists()
    ledger.reserve(request("d"))
    assert seal(spoiled, RECORDS - 1).read_bytes() == content
    assert seal(spoiled, RECORDS).exists()
    assert_whole(spoiled, RECORDS + 1)


def test_a_record_that_changes_before_it_is_sealed_is_told(spoiled: Path) -> None:
    # Kills: a writer who takes another's seal as it finds it, and goes on from a broken one.
    seal(spoiled, RECORDS - 1).unlink()
    ledger = assert_whole(spoiled)
    seal(spoiled, RECORDS - 1).write_text(f"{'0' * 64}  {RECORDS - 1:08d}.json\n")
    with pytest.raises(InputError, match="is damaged: record 5 is not the one that its seal is of"):
        ledger.reserve(request("d"))
    assert not record(spoiled, RECORDS).exists()


def loaded(folder: Path) -> Journal:
    journal = Journal(str(folder))
    journal.load()
    return journal


def test_of_two_writers_one_wins_and_the_other_follows(spoiled: Path) -> None:
    # Kills: a record that is written over, a loser that believes it won, a record that is followed
    # twice or not at all.
    one, other = loaded(spoiled), loaded(spoiled)
    assert one.append(b"one")
    assert not other.append(b"other")
    assert record(spoiled, RECORDS).read_bytes() == b"one"
    assert len(other.contents) == RECORDS
    assert list(other.follow()) == [b"one"]
    assert list(other.follow()) == []
    assert other.contents == one.contents
    assert other.append(b"other")
    assert not one.append(b"third")
    assert list(one.follow()) == [b"other"]
    assert one.append(b"third")
    assert other.append(b"fourth") is False
    assert list(other.follow()) == [b"third"]
    assert loaded(spoiled).contents == one.contents == other.contents
    assert len(one.contents) == RECORDS + 3
    assert not [path for path in spoiled.iterdir() if path.name.startswith(".")]


def test_a_follower_makes_up_for_a_missing_seal(spoiled: Path) -> None:
    # Kills: a record that is followed upon one without a seal.
    one, other = loaded(spoiled), loaded(spoiled)
    one.append(b"one")
    seal(spoiled, RECORDS).unlink()
    assert list(other.follow()) == [b"one"]
    assert other.append(b"two")
    assert seal(spoiled, RECORDS).read_text() == f"{digest(b'one')}  {RECORDS:08d}.json\n"
    loaded(spoiled)


def test_nothing_is_added_after_a_broken_seal(spoiled: Path) -> None:
    # Kills: a writer that trusts the seal of the record that it followed last.
    one, other = loaded(spoiled), loaded(spoiled)
    one.append(b"one")
    seal(spoiled, RECORDS).write_bytes(b"")
    other.follow()
    with pytest.raises(Damaged, match=f"record {RECORDS} is not the one that its seal is of"):
        other.append(b"two")


def test_a_process_that_may_write_no_more_leaves_the_ledger_whole(spoiled: Path) -> None:
    # A limit on the size of files stops the writer half-way through a record, as a full disk does.
    # Kills: a record that appears before it is whole; a leftover that others trip over.
    ledger = assert_whole(spoiled)
    before = sorted(path.name for path in spoiled.iterdir())
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            ledger.reserve(request("d"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert sorted(path.name for path in spoiled.iterdir()) == before
    assert_whole(spoiled).reserve(request("d"))
    assert_whole(spoiled, RECORDS + 1)
