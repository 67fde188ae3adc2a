"""Signed ledgers: what somebody writes there who has no key of them is found, and told."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ledger_requests import Refused, request
from signed_ledgers import KINDS, chained, found, lay, signed
from signing_keys import KeyFiles, configured

from quietcorpus.pipelines.ledger.book import Ledger
from quietcorpus.pipelines.ledger.records import NewKey, digest, parse
from quietcorpus.pipelines.ledger.trust import Trust


def test_as_it_was_written_it_opens(
    laid: Path, original: list[bytes], keys: dict[str, KeyFiles]
) -> None:
    # The control of all tests below. Kills: a key that is trusted only while it is in force, or
    # only after.
    lay(laid, original)
    for pin in (None, keys["first"], keys["then"]):
        assert found(laid, pin) is None
    ledger = Ledger.open(str(laid), Trust())
    assert [one.record for one in ledger.records] == KINDS
    assert list(ledger.signatures.since.items()) == [
        (keys["first"].key.public, 0),
        (keys["then"].key.public, 6),
    ]
    assert all(one.signature for one in ledger.records)
    assert len({one.signature for one in ledger.records}) == len(KINDS)


def edits(content: bytes) -> Iterator[bytes]:
    """One edit at every byte of a record: another bit, one byte more, one less, in turns."""
    for position, byte in enumerate(content):
        before, after = content[:position], content[position + 1 :]
        more = before + bytes([random.choice(b' 0a"')]) + content[position:]
        yield (before + bytes([byte ^ 1 << random.randrange(8)]) + after, more, before + after)[
            position % 3
        ]


@pytest.mark.parametrize(
    "number", [0, pytest.param(range(1, len(KINDS)), marks=pytest.mark.nightly)]
)
def test_every_byte_of_every_record_counts(
    laid: Path, original: list[bytes], number: int | range
) -> None:
    """Edit the last record of a ledger at every byte, and seal it anew, with nothing after it.

    Kills: a signature of a part of the record, or of its values; bytes that it is not of.
    """
    for last in [number] if isinstance(number, int) else number:
        assert_every_edit_is_found(laid, original[: last + 1], len(original[last]))


@pytest.mark.parametrize("number", range(1, len(KINDS)))
def test_bytes_of_each_record_count(laid: Path, original: list[bytes], number: int) -> None:
    # Kills: the same, by a sample.
    assert_every_edit_is_found(laid, original[: number + 1], 30)


def assert_every_edit_is_found(laid: Path, records: list[bytes], count: int) -> None:
    """Make so many edits of the last record, each at another byte."""
    lay(laid, records)
    assert found(laid) is None
    last, number = records[-1], len(records) - 1
    path, seal = laid / f"{number:08d}.json", laid / f"{number:08d}.sha256"
    for edit in random.sample(list(edits(last)), count):
        if edit == last:
            continue
        path.write_bytes(edit)
        seal.write_text(f"{digest(edit)}  {path.name}\n")
        assert found(laid), edit


@pytest.mark.parametrize("number", range(len(KINDS)))
def test_fields_of_a_record_count(laid: Path, original: list[bytes], number: int) -> None:
    """Write another value into every field that the form of a record permits.

    Kills: a field that the signature does not cover, of whatever kind of record.
    """
    fields = json.loads(original[number])
    others: dict[str, Any] = {
        "created": "2026-11-26T00:00:00Z",
        "nonce": "f" * 32,
        "corpus": "/elsewhere",
        "key": "e" * 64,
        "release": "z",
        "run": "e" * 32,
        "output": "/elsewhere/a",
        "whose": "what",
        "reservation": 9,
        "identity": "e" * 32,
        "card_sha256": "e" * 64,
        "reason": "another",
        "proof": "e" * 128,
        "signature": "e" * 128,
    }
    for name in fields.keys() & others.keys():
        edited = (json.dumps(fields | {name: others[name]}, indent=1) + "\n").encode()
        assert edited != original[number]
        lay(laid, [*original[:number], edited])
        said = found(laid)
        assert said is not None, name
        assert f"is damaged: record {number}: " in said


def test_a_record_that_is_not_signed_is_damage(laid: Path, original: list[bytes]) -> None:
    # Kills: signatures that are checked only where there are some.
    for number in range(1, len(original)):
        lay(laid, chained(original[: number + 1], number, None))
        said = found(laid)
        assert said is not None
        assert f"record {number}: it is not signed, though the key" in said


def test_forged_records_are_damage(
    laid: Path, original: list[bytes], keys: dict[str, KeyFiles]
) -> None:
    """Give back, raise a cap and sign on a key, each by a key of one's own, and by the old one.

    Kills: a signature by any key, by the key before, or by the key that the record itself names.
    """
    common = {name: json.loads(original[-1])[name] for name in ("created", "nonce")}
    caps = json.loads(original[5])["caps"]
    caps[0]["epsilon"] = "100"
    drafts: list[dict[str, Any]] = [
        {"record": "cancellation", "reservation": 7, "reason": "it never ran"},
        {"schema_version": 3, "record": "caps", "caps": caps, "reason": "more"},
        {"schema_version": 3, "record": "key", "key": keys["stranger"].key.public},
    ]
    for draft in drafts:
        fields = {"schema_version": 1, "number": 8, "previous": "0" * 64} | common | draft
        forged = (json.dumps(fields, indent=1) + "\n").encode()
        for name in ("stranger", "first"):
            lay(laid, chained([*original, forged], len(original), keys[name]))
            said = found(laid)
            assert said is not None
            assert (
                f"record 8: its signature is not by the key {keys['then'].key.public[:12]}" in said
            )
        # The control: by the key in force, it stands, but for a key without its proof.
        lay(laid, chained([*original, forged], len(original), keys["then"]))
        said = found(laid)
        assert said is None or "record 8: a key that follows another one has a proof" in said
        assert (said is None) == (draft["record"] != "key")


def test_a_key_that_was_in_force_never_returns(
    laid: Path, original: list[bytes], keys: dict[str, KeyFiles]
) -> None:
    # Kills: a key that leaked and signs on again, though all signatures and proofs are right.
    first, then = keys["first"].key, keys["then"]
    fields = json.loads(original[6]) | {"number": 8, "previous": digest(original[7])}
    fields |= {"key": first.public, "created": json.loads(original[7])["created"]}
    del fields["signature"], fields["proof"]
    record = parse((json.dumps(fields, indent=1) + "\n").encode())
    assert isinstance(record, NewKey)
    proven = record.model_copy(update={"proof": first.sign(record.proven_content).hex()})
    last = signed(json.loads(proven.to_bytes()), then)
    said = found(lay(laid, [*original, last]))
    assert said is not None
    assert f"record 8: the key {first.public[:12]} was in force before, and cannot return" in said


def test_a_record_of_a_later_version_or_a_clock_ahead(
    laid: Path, signed_folder: Path, original: list[bytes], keys: dict[str, KeyFiles]
) -> None:
    # Kills: a record from the future that is taken for damage, or that blocks nothing.
    newer = (json.dumps(json.loads(original[-1]) | {"schema_version": 4}, indent=1) + "\n").encode()
    lay(laid, [*original[:-1], newer])
    assert "record 7: it was written by a newer version (schema 4)" in str(found(laid))
    ahead = json.loads(original[-1]) | {"created": "2999-01-01T00:00:00Z"}
    lay(laid, [*original[:-1], signed(ahead, keys["then"])])
    assert found(laid, keys["then"]) is None
    with (
        configured(ledger_key=keys["then"].private),
        Refused(str(laid), "before the last record's 2999-01-01 00:00: one of the two is wrong"),
    ):
        Ledger.open(str(laid)).reserve(request(str(signed_folder / "ledger"), "d", 1))
