"""Cards that name records which a ledger has lost: which are found, and how they are counted."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from ledger_requests import CARD, CASES, DECLARED, RUN, Refused, ids, request, terms
from machine import ROOT
from s3_server import BUCKET, S3Server

from quietcorpus.mechanisms.accounting.guarantees import LimitedPrecision
from quietcorpus.pipelines.ledger.adoption import adopt
from quietcorpus.pipelines.ledger.beside import require_counted, uncounted
from quietcorpus.pipelines.ledger.book import Ledger
from quietcorpus.pipelines.ledger.caps import Cost
from quietcorpus.pipelines.ledger.kept_head import LEDGER_HEAD, head_at
from quietcorpus.pipelines.ledger.records import Adoption, Partition, Reservation, digest
from quietcorpus.transforms.errors import InputError, StoreUnavailable

CARDS = ROOT / "tests" / "fixtures" / "formats" / "card-v1" / "release.json"
FIVE = Cost(LimitedPrecision(2, Fraction(5)), "words")
EIGHT, ONE, ZERO = (replace(FIVE, guarantee=LimitedPrecision(2, Fraction(e))) for e in (8, 1, 0))
WHY = "restored on 3 December"


def published(place: str, name: str, **entry: Any) -> Path:
    """A card of epsilon 5 beside the output, which names the ledger's last reservation."""
    ledger = Ledger.open(place)
    found = max(ledger.state.reservations.values(), key=lambda one: one.number)
    own = {
        "reservation": found.number,
        "record_sha256": digest(found.to_bytes()),
        "opening_sha256": ledger.opening,
        "whose": "words",
    }
    card = json.loads(CARDS.read_text())
    own = {key: value for key, value in (own | entry).items() if value is not None}
    folder = Path(place).parent / "out" / name
    folder.mkdir(parents=True)
    text = json.dumps(card | {"release": name, "ledger": own})
    (folder / "release.json").write_text(text)
    return folder


def lost(place: str, name: str = "a", **changes: Any) -> Path:
    """Publish a release of epsilon 5, and cut its records off; the place of the release."""
    backup = shutil.copytree(place, f"{place}.backup")
    ledger = Ledger.open(place)
    found = ledger.reserve(request(place, name, cost=FIVE, **changes))
    ledger.commit(found, RUN, CARD, ids("x") if found.disjoint == "compared" else None)
    entry = {"partition": found.partition, "disjoint": found.disjoint}
    folder = published(place, name, identifier=found.identifier, **entry)
    shutil.rmtree(place)
    os.rename(backup, place)
    return folder


def test_what_is_published_meanwhile_is_not_lost(place: str) -> None:
    # Kills: a launcher that is refused because another one was faster.
    slow = Ledger.open(place)
    Ledger.open(place).reserve(request(place, "a", cost=FIVE))
    folder = published(place, "a")
    assert uncounted(slow, [str(folder)]) == []
    require_counted(slow, f"{folder.parent}/b")


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (None, 0),
        ("{", 0),
        ("[" * 100_000, 0),
        ("[]", 0),
        ('{"ledger": "s3://ledger"}', 0),
        ('{"ledger": {"reservation": 7, "record_sha256": "aa"}}', 0),  # of an earlier version
        ('{"ledger": {"reservation": 7, "record_sha256": "aa", "opening_sha256": "bb"}}', 0),
        ('{"ledger": {"reservation": 7, "record_sha256": "aa", "opening_sha256": "OPENING"}}', 1),
        ('{"new": 1, "ledger": {"reservation": 0, "record_sha256": "aa", "opening_sha256": '
         '"OPENING"}}', 1),
    ],
)  # fmt: skip
def test_which_cards_name_a_lost_record(place: str, content: str | None, found: int) -> None:
    # Kills: another ledger's release, or no release, that blocks a schedule; a card of a later
    # version that is passed over; a number that is there, of another record.
    ledger = Ledger.open(place)
    folder = Path(place).parent / "out" / "other"
    folder.mkdir(parents=True)
    if content is not None:
        (folder / "release.json").write_text(content.replace("OPENING", ledger.opening))
    assert len(uncounted(ledger, [f"{folder.parent}/a"])) == found
    assert uncounted(ledger, [f"{folder}/deeper/a", "s3://bucket", "/a"]) == []


def test_a_card_that_cannot_be_read_is_told(
    place: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Kills: a schedule that a stranger's file ends; a comparison that is left out in silence, or
    # for an outage, after which another try would compare.
    folder = lost(place)
    (folder / "release.json").unlink()
    (folder / "release.json").mkdir()
    assert uncounted(Ledger.open(place), [str(folder)]) == []
    assert f"{folder}/release.json cannot be read: whether the ledger" in caplog.text

    def gone(folder: str) -> list[str]:
        raise TimeoutError

    monkeypatch.setattr("quietcorpus.pipelines.storage.stores.folders", gone)
    with pytest.raises(StoreUnavailable):
        uncounted(Ledger.open(place), ["s3://bucket/out/a"])


def test_what_was_spent_is_counted_whatever_the_cap(place: str) -> None:
    # Kills: a release that cannot be counted because the cap was passed; one that is counted twice;
    # a cap that has room after that.
    folder = lost(place)
    Ledger.open(place).reserve(request(place, "b", cost=EIGHT))
    assert adopt(place, [str(folder)], WHY) == adopt(place, [str(folder)], WHY) == ["a"]
    ledger = Ledger.open(place)
    assert ledger.state.used(0).epsilon == 13
    record = ledger.records[-1]
    assert isinstance(record, Adoption)
    assert (record.release, record.output, record.reason) == ("a", str(folder), WHY)
    assert record.card_sha256 == digest((folder / "release.json").read_bytes())
    require_counted(ledger, f"{folder.parent}/c")
    with Refused(place, "epsilon 1 would pass the cap of 10: 13 is used, by b, a"):
        Ledger.open(place).reserve(request(place, "c", cost=ONE))
    with Refused(place, "a was published to .* and adopted as record 2: it cannot be made again"):
        Ledger.open(place).reserve(request(place, "a", cost=FIVE))
    with Refused(place, "a is committed: it was published"):
        Ledger.open(place).cancel("a", "a trial")


@pytest.mark.parametrize(
    ("sort", "used"), [(DECLARED, 5), (CASES, 10), (None, 10)], ids=["declared", "ids", "none"]
)
def test_an_adopted_partition(place: str, sort: Any, used: int) -> None:
    # Kills: documents that are taken to be in no other partition though their ids were lost; a
    # declaration that is forgotten.
    part = None if sort is None else Partition("jan", sort)
    folder = lost(place, partition=part)
    other = None if sort is None else Partition("feb", sort)
    Ledger.open(place).reserve(request(place, "b", partition=other, cost=FIVE))
    adopt(place, [str(folder)], WHY)
    assert Ledger.open(place).state.used(0).epsilon == used


def test_what_is_not_to_be_adopted(place: str, tmp_path: Path) -> None:
    # Kills: a cost that is counted where it was not spent, or twice, or without a reason; a release
    # that is left out.
    first = lost(place, "a")
    second = lost(place, "b")
    other = str(tmp_path / "other")
    Ledger.init(other, terms(tmp_path / "corpus"))
    with Refused(other, "names another ledger than .*/other, or none"):
        adopt(other, [str(first)], WHY)
    with Refused(place, "reason: is empty"):
        adopt(place, [str(first), str(second)], " ")
    with Refused(place, "has lost no record that is known; name a release"):
        adopt(place, [], WHY)
    with Refused(place, "nowhere/release.json cannot be read"):
        adopt(place, [str(tmp_path / "nowhere")], WHY)
    with pytest.raises(InputError, match="also lacks the record of b at "):
        adopt(place, [str(first)], WHY)
    adopt(place, [str(first), str(second)], WHY)
    assert Ledger.open(place).state.used(0).epsilon == 10
    Ledger.open(place).reserve(request(place, "c", cost=ZERO))
    counted = published(place, "c")
    with Refused(place, "has record 3, which the card of c names; nothing is to be adopted"):
        adopt(place, [str(counted)], WHY)


def test_a_lost_head_is_given_up_only_when_all_is_counted(place: str, tmp_path: Path) -> None:
    # Kills: a head that is replaced while a release beside the others is not counted; a ledger that
    # is refused for ever.
    head = tmp_path / "head"
    head.write_text(f"{Ledger.open(place).head}\n")
    with head_at(str(head)):
        Ledger.open(place).reserve(request(place, "first", cost=ONE))
        folder = lost(place)
        kept = head.read_text()
        assert kept.startswith("3:")
        with Refused(place, "ends with record 1, and had record 3"):
            Ledger.open(place)
        with Refused(place, "also lacks the record of a"):
            adopt(place, [], WHY)
        assert head.read_text() == kept
        adopt(place, [str(folder)], WHY)
        ledger = Ledger.open(place)
        assert head.read_text() == f"{ledger.head}\n"
    assert [one.record for one in ledger.records[2:]] == ["adoption", "restoration"]


def test_in_an_object_store(place: str, s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    # Kills: a head that is written over a later one, and cards that are not found in a store.
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    s3.empty()
    folder = lost(place)
    client = s3.client()
    content = (folder / "release.json").read_bytes()
    for key in ("out/a/release.json", "out/a/data/part", "out/b/data/part"):
        client.put_object(Bucket=BUCKET, Key=key, Body=content)
    (found,) = uncounted(Ledger.open(place), [f"s3://{BUCKET}/out/c"])
    assert (found.place, found.release) == (f"s3://{BUCKET}/out/a", "a")
    head = f"s3://{BUCKET}/heads/own"
    monkeypatch.setenv(LEDGER_HEAD, head)
    with pytest.raises(InputError, match="got no file"):
        Ledger.open(place)
    monkeypatch.delenv(LEDGER_HEAD)
    slow = Ledger.open(place)
    monkeypatch.setenv(LEDGER_HEAD, head)
    slow.keep_head()
    found_there = client.get_object(Bucket=BUCKET, Key="heads/own")["Body"].read().decode()
    assert found_there == f"{slow.head}\n"
    late = Ledger.open(place)
    late.reserve(request(place, "b", 1))
    slow.keep_head()
    assert client.get_object(Bucket=BUCKET, Key="heads/own")["Body"].read().decode() == (
        f"{late.head}\n"
    )
    assert isinstance(late.records[-1], Reservation)
