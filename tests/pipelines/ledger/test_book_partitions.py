"""Partitions in a ledger's book: their sorts, the ids that tell them apart, and what they cost."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from ledger_requests import (
    CARD,
    CASES,
    DECLARED,
    ROWS,
    RUN,
    STRANGERS,
    UNKNOWN,
    Refused,
    files,
    ids,
    request,
)

from quietcorpus.pipelines.ledger import views
from quietcorpus.pipelines.ledger.book import Ledger
from quietcorpus.pipelines.ledger.caps import Charge
from quietcorpus.pipelines.ledger.records import Partition, Reservation, Sort
from quietcorpus.transforms.errors import InputError, StageError


def test_nothing_of_a_partition_is_written_once_it_was_given_back(place: str) -> None:
    # Kills: documents' digests that are written before it is known whether they may be.
    run = Ledger.open(place)
    found = run.reserve(request(place, "a", partition=Partition("p", CASES)))
    Ledger.open(place).cancel("a", "it died")
    with Refused(place, "given back meanwhile"):
        Ledger.open(place).commit(found, RUN, CARD, ids("1"))


def test_of_partitions_that_share_an_id_the_first_is_compared(place: str) -> None:
    # Kills: ids that are compared with committed ones alone, or with what was read before the race
    # was lost; ids of what was given back; a second record of what is compared or spent.
    ledger = Ledger.open(place)
    first, second = (ledger.reserve(request(place, n, partition=Partition(n, CASES))) for n in "ab")
    late = Ledger.open(place)
    ledger.compare(first, ids("1", "2"))
    said = "1 documents of b are in a .*or give a back if its run is dead$"
    with pytest.raises(InputError, match=said):  # which has kept its ids before it lost the race
        late.compare(second, ids("2", "3"))
    for handle in (ledger, late, Ledger.open(place)):
        with Refused(place, said):
            handle.compare(second, ids("2", "3"))
        with Refused(place, said):
            handle.commit(second, RUN, CARD, ids("2", "3"))
    before = files(place)
    for handle in (ledger, late, Ledger.open(place)):
        handle.compare(first, ids("1", "2"))
    assert files(place) == before
    Ledger.open(place).cancel("a", "its run is dead")
    ledger = Ledger.open(place)
    ledger.compare(second, ids("2", "3"))
    with Refused(place, "given back meanwhile"):
        ledger.compare(first, ids("1", "2"))
    third = ledger.reserve(request(place, "c", partition=Partition("c", CASES)))
    ledger.refuse(second, RUN)
    with Refused(place, "1 documents of c are in b .*, or the partition$"):
        ledger.compare(third, ids("3"))
    assert ledger.state.used(0) == Charge(Fraction(4))


def test_what_cannot_follow_a_comparison_is_not_written(place: str) -> None:
    # Kills: a record that no ledger can hold, which would spoil it; a file of ids that no record
    # names.
    ledger = Ledger.open(place)
    plain = ledger.reserve(request(place, "a", 1, partition=Partition("a", CASES)))
    ledger.compare(plain, ids("1"))
    before = files(place)
    with pytest.raises(StageError, match="are not those that were compared"):
        ledger.commit(plain, RUN, CARD, ids("2"))
    assert files(place) == before
    ledger.commit(plain, RUN, CARD, ids("1"))
    other = ledger.reserve(request(place, "b", 1))
    before = files(place)
    with pytest.raises(StageError, match="b has no ids to compare"):
        ledger.compare(other, ids("1"))
    assert files(place) == before
    assert len(Ledger.open(place).records) == 5


def held(place: str, release: str, partition: str | None) -> tuple[Ledger, Reservation]:
    """A reservation of a release whose ids are compared, if it is of a partition."""
    ledger, part = Ledger.open(place), partition and Partition(partition, CASES)
    return ledger, ledger.reserve(request(place, release, 4, partition=part))


def test_partitions_with_a_document_in_common_are_refused(place: str) -> None:
    # Kills: partitions that are taken at their word, a count of all documents for that of shared
    # ones, a comparison with the last release or the own partition alone.
    for release, partition, names in [
        ("a", "one", "123"),
        ("a2", "one", "1234"),
        ("b", "two", "567"),
    ]:
        ledger, found = held(place, release, partition)
        ledger.commit(found, RUN, CARD, ids(*names))
    ledger, found = held(place, "c", "three")
    before = Ledger.open(place).records
    for names, shared, other, of in [("89 2 1", 2, "one", "a"), ("897", 1, "two", "b")]:
        message = (
            f"^ledger.partition: {shared} documents of three are in {other} as well "
            rf"\(release {of}\)"
        )
        with pytest.raises(InputError, match=message):
            Ledger.open(place).commit(found, RUN, CARD, ids(*names.replace(" ", "")))
    with pytest.raises(InputError, match=r"1 documents of three are in one as well \(release a2\)"):
        ledger.commit(found, RUN, CARD, ids("4", "8"))
    assert Ledger.open(place).records == before
    ledger.commit(found, RUN, CARD, ids("8", "9"))
    assert Ledger.open(place).state.used(0) == Charge(Fraction(8))


@pytest.mark.parametrize("first", [CASES, DECLARED, UNKNOWN], ids=str)
@pytest.mark.parametrize("second", [CASES, ROWS, STRANGERS, DECLARED, UNKNOWN], ids=str)
def test_partitions_of_two_sorts_are_not_mixed(place: str, first: Sort, second: Sort) -> None:
    # Kills: ids of two columns, or under two keys, that are taken to be comparable; partitions
    # with ids beside those without; a sort that is fixed by what was given back, or that binds
    # releases of no partition; a plan that takes a mixture, or asks for a key that it cannot have.
    ledger = Ledger.open(place)
    ledger.reserve(request(place, "a", 1, partition=Partition("one", first)))
    asked = request(place, "b", 1, partition=Partition("two", second))
    unkeyed = replace(asked, partition=Partition("two", replace(second, key=None)))
    if first == second:
        assert Ledger.open(place).foresee(unkeyed)[0].charge == Charge(Fraction(1))
        Ledger.open(place).reserve(asked)
        return
    message = "^ledger.partition: other partitions are .*, and two is .*: documents in both would"
    if second == STRANGERS and first == CASES:
        message = "^ledger.partition: the ids of other partitions were digested under another mast"
    else:
        with Refused(place, message):
            Ledger.open(place).foresee(unkeyed)
    for handle in (ledger, Ledger.open(place)):
        with Refused(place, message):
            handle.reserve(asked)
    Ledger.open(place).reserve(replace(asked, release="c", partition=None))
    Ledger.open(place).cancel("a", "of another sort")
    Ledger.open(place).reserve(asked)
    # That handle still takes the first sort for the ledger's, until it has lost a race.
    with Refused(place, "^ledger.partition: "):
        ledger.reserve(request(place, "d", 1, partition=Partition("one", first)))


@pytest.mark.parametrize("changed", [ROWS, STRANGERS, DECLARED, UNKNOWN], ids=str)
def test_a_run_goes_on_by_the_same_sort_alone(place: str, changed: Sort) -> None:
    # Kills: a run that goes on with a reservation by whose rules its ids are not compared.
    ledger = Ledger.open(place)
    asked = request(place, "a", partition=Partition("one", CASES))
    assert ledger.reserve(asked) == ledger.reserve(asked)
    of_its_key = changed.disjoint == "compared" and changed.column == CASES.column
    said = "by another spec or under another master key" if of_its_key else "of another partition"
    with Refused(place, f"^ledger: release a was reserved on .* {said}"):
        ledger.reserve(replace(asked, partition=Partition("one", changed)))


@pytest.mark.parametrize(
    ("sort", "identifiers"), [(CASES, None), (DECLARED, ids("1")), (UNKNOWN, ids("1"))]
)
def test_ids_are_there_where_they_are_compared(
    place: str, sort: Sort, identifiers: bytes | None
) -> None:
    # Kills: a partition that is committed without the ids by which others are compared with it.
    ledger = Ledger.open(place)
    found = ledger.reserve(request(place, "a", partition=Partition("one", sort)))
    before = files(place)
    with pytest.raises(StageError, match="the ids of a are not there as its reservation says"):
        ledger.commit(found, RUN, CARD, identifiers)
    assert files(place) == before


def test_partitions_that_nothing_tells_apart_add_up(place: str) -> None:
    # Kills: partitions that compose in parallel though they may share every document.
    for name in ("a", "b"):
        ledger = Ledger.open(place)
        found = ledger.reserve(request(place, name, partition=Partition(name, UNKNOWN)))
        ledger.commit(found, RUN, CARD)
    assert Ledger.open(place).state.used(0) == Charge(Fraction(8))
    for partition in (Partition("c", UNKNOWN), Partition("a", UNKNOWN), None):
        with Refused(place, "epsilon 4 would pass the cap of 10: 8 is used, by a, b"):
            Ledger.open(place).reserve(request(place, "c", partition=partition))


def made_older(place: str) -> None:
    """Rewrite the records as those were that did not say of which sort a partition is."""
    previous = None
    for path in sorted(Path(place).glob("*.json")):
        fields = json.loads(path.read_text())
        fields = {k: v for k, v in fields.items() if k not in ("disjoint", "identifier")}
        path.write_text(json.dumps(fields | {"previous": previous}, indent=1) + "\n")
        previous = hashlib.sha256(path.read_bytes()).hexdigest()
        path.with_suffix(".sha256").write_text(f"{previous}  {path.name}\n")


@pytest.mark.parametrize("sort", [CASES, DECLARED], ids=str)
def test_older_partitions_are_read_and_add_up(place: str, sort: Sort) -> None:
    # Kills: an older ledger that is taken for damaged; partitions that compose in parallel on no
    # ground that is written down; more that is spent where they have passed the cap; a rest that
    # is shown without its sign.
    for name in ("a", "b"):
        part = Partition(name, sort)
        Ledger.open(place).reserve(request(place, name, 6, partition=part))
    made_older(place)
    ledger = Ledger.open(place)
    assert ledger.state.used(0) == Charge(Fraction(12))
    (shown,) = views.accounts(ledger)["accounts"]
    assert (shown["used"]["epsilon_exact"], shown["left"]["epsilon_exact"]) == ("12", "0")
    for other in (CASES, DECLARED):
        with Refused(place, "^ledger.partition: other partitions are added up, for want of ids"):
            ledger.reserve(request(place, "c", 1, partition=Partition("c", other)))
    with Refused(place, "^ledger: release a was reserved on .* by an older version, which did not"):
        ledger.reserve(request(place, "a", 6, partition=Partition("a", UNKNOWN)))
    for partition in (None, Partition("a", UNKNOWN), Partition("c", UNKNOWN)):
        with Refused(place, "would pass the cap of 10: 12 is used"):
            ledger.reserve(request(place, "c", 1, partition=partition))
    ledger.cancel("a", "it never ran")
    Ledger.open(place).reserve(request(place, "c", 4, partition=Partition("c", UNKNOWN)))
    assert Ledger.open(place).state.used(0) == Charge(Fraction(10))


def test_a_race_of_overlapping_partitions_has_one_winner(place: str) -> None:
    # Kills: a comparison with those alone that had committed before the race.
    one, first = held(place, "a", "one")
    other, second = held(place, "b", "two")
    one.commit(first, RUN, CARD, ids("1", "2"))
    with pytest.raises(InputError, match="1 documents of two are in one as well"):
        other.commit(second, RUN, CARD, ids("2", "3"))
    assert list(Ledger.open(place).state.commits) == [first.number]


def test_what_is_of_no_partition_may_have_any_documents(place: str) -> None:
    # Kills: releases of all documents that are compared, or not paid by every partition.
    ledger, found = held(place, "a", None)
    ledger.commit(found, RUN, CARD)
    ledger, found = held(place, "b", "one")
    ledger.commit(found, RUN, CARD, ids("1"))
    assert Ledger.open(place).state.used(0) == Charge(Fraction(8))
    with Refused(place, "would pass the cap"):
        held(place, "c", "one")


def test_digests_are_kept_as_they_were_committed(place: str) -> None:
    # Kills: digests that are lost, cut or written anew by a run that goes on.
    ledger, found = held(place, "a", "one")
    content = ids(*"123456789")
    made = ledger.commit(found, RUN, CARD, content)
    assert made.identifiers_sha256 == hashlib.sha256(content).hexdigest()
    (path,) = Path(place, "identifiers").iterdir()
    assert path.read_bytes() == content
    before = path.stat()
    assert Ledger.open(place).commit(found, RUN, CARD, content) == made
    after = path.stat()
    # A file that is written over is empty for a moment, and for good if the run dies then.
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.parametrize("harm", ["gone", "cut", "empty", "changed", "another's"])
def test_digests_that_were_tampered_with_are_told(place: str, harm: str) -> None:
    # Kills: a file that is believed, by which an overlap would go unseen.
    ledger, found = held(place, "a", "one")
    ledger.commit(found, RUN, CARD, ids("1", "2"))
    (path,) = Path(place, "identifiers").iterdir()
    content = path.read_bytes()
    if harm == "gone":
        path.unlink()
    else:
        other = {
            "cut": content[:-16],
            "empty": b"",
            "changed": bytes([content[0] ^ 1]) + content[1:],
            "another's": ids("8", "9"),
        }
        path.write_bytes(other[harm])
    later, reserved = held(place, "b", "two")
    before = len(Ledger.open(place).records)
    with pytest.raises(InputError, match=r"is damaged: .* is missing, or not the file that was"):
        later.commit(reserved, RUN, CARD, ids("2", "3"))
    assert len(Ledger.open(place).records) == before
