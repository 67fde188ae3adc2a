"""Signed ledgers: what somebody writes there who has no key of them is found, and told."""

from __future__ import annotations

import json
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ledger_requests import CARD, RUN, Refused, request, terms
from signed_ledgers import KINDS, chained, contents, lay, signed, write
from signing_keys import KeyFiles, configured

from quietcorpus.pipelines.ledger import acts
from quietcorpus.pipelines.ledger.book import Ledger
from quietcorpus.pipelines.ledger.journal import Journal
from quietcorpus.pipelines.ledger.records import NewKey, digest, parse
from quietcorpus.pipelines.ledger.trust import Trust
from quietcorpus.transforms.errors import InputError


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("signed")


@pytest.fixture(scope="module")
def keys(folder: Path) -> dict[str, KeyFiles]:
    """Two keys of the ledger, the next one, and one of somebody else."""
    return {name: KeyFiles(folder, name) for name in ("first", "then", "next", "stranger")}


@pytest.fixture(scope="module")
def original(folder: Path, keys: dict[str, KeyFiles]) -> list[bytes]:
    """The records of a ledger of every kind of them."""
    return contents(write(folder, keys["first"], keys["then"]))


@pytest.fixture
def place() -> Iterator[Path]:
    """A place for a spoiled ledger, in memory where there is such a folder."""
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    made = Path(tempfile.mkdtemp(dir=memory))
    yield made / "ledger"
    shutil.rmtree(made)


def found(place: Path, pin: KeyFiles | None = None, head: str | None = None) -> str | None:
    """What is told of a ledger that is spoiled; None if it opens. Nothing is written."""
    before, said = sorted(place.iterdir()), None
    with configured():
        try:
            Ledger.open(str(place), Trust.configured(pin and pin.public, head))
        except InputError as error:
            said = str(error)
    assert "\n" not in (said or "")
    assert sorted(place.iterdir()) == before
    return said


def test_as_it_was_written_it_opens(
    place: Path, original: list[bytes], keys: dict[str, KeyFiles]
) -> None:
    # The control of all tests below. Kills: a key that is trusted only while it is in force, or
    # only after.
    lay(place, original)
    for pin in (None, keys["first"], keys["then"]):
        assert found(place, pin) is None
    ledger = Ledger.open(str(place), Trust())
    assert [one.record for one in ledger.records] == KINDS
    assert list(ledger.signatures.since.items()) == [
        (keys["first"].key.public, 0),
        (keys["then"].key.public, 6),
    ]
    assert all(one.signature for one in ledger.records)
    assert len({one.signature for one in ledger.records}) == len(KINDS)


@pytest.mark.parametrize("name", ["next", "stranger"])
def test_another_key_is_not_the_ledgers(
    place: Path, original: list[bytes], keys: dict[str, KeyFiles], name: str
) -> None:
    # Kills: a key of whoever checks that is not compared.
    lay(place, original)
    said = found(place, keys[name])
    assert said is not None
    assert f"and not by public key, which is {keys[name].key.public[:12]}" in said


def edits(content: bytes) -> Iterator[bytes]:
    """One edit at every byte of a record: another bit, one byte more, one less, in turns."""
    for position, byte in enumerate(content):
        before, after = content[:position], content[position + 1 :]
        more = before + bytes([random.choice(b' 0a"')]) + content[position:]
        yield (before + bytes([byte ^ 1 << random.randrange(8)]) + after, more, before + after)[
            position % 3
        ]


@pytest.mark.parametrize("number", [0, pytest.param(range(1, len(KINDS)), marks=pytest.mark.slow)])
def test_every_byte_of_every_record_counts(
    place: Path, original: list[bytes], number: int | range
) -> None:
    """Edit the last record of a ledger at every byte, and seal it anew, with nothing after it.

    Kills: a signature of a part of the record, or of its values; bytes that it is not of.
    """
    for last in [number] if isinstance(number, int) else number:
        assert_every_edit_is_found(place, original[: last + 1], len(original[last]))


@pytest.mark.parametrize("number", range(1, len(KINDS)))
def test_bytes_of_each_record_count(place: Path, original: list[bytes], number: int) -> None:
    # Kills: the same, by a sample.
    assert_every_edit_is_found(place, original[: number + 1], 30)


def assert_every_edit_is_found(place: Path, records: list[bytes], count: int) -> None:
    """Make so many edits of the last record, each at another byte."""
    lay(place, records)
    assert found(place) is None
    last, number = records[-1], len(records) - 1
    path, seal = place / f"{number:08d}.json", place / f"{number:08d}.sha256"
    for edit in random.sample(list(edits(last)), count):
        if edit == last:
            continue
        path.write_bytes(edit)
        seal.write_text(f"{digest(edit)}  {path.name}\n")
        assert found(place), edit


@pytest.mark.parametrize("number", range(len(KINDS)))
def test_fields_of_a_record_count(place: Path, original: list[bytes], number: int) -> None:
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
        lay(place, [*original[:number], edited])
        said = found(place)
        assert said is not None, name
        assert f"is damaged: record {number}: " in said


def test_a_record_that_is_not_signed_is_damage(place: Path, original: list[bytes]) -> None:
    # Kills: signatures that are checked only where there are some.
    for number in range(1, len(original)):
        lay(place, chained(original[: number + 1], number, None))
        said = found(place)
        assert said is not None
        assert f"record {number}: it is not signed, though the key" in said


def test_forged_records_are_damage(
    place: Path, original: list[bytes], keys: dict[str, KeyFiles]
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
        laid = (json.dumps(fields, indent=1) + "\n").encode()
        for name in ("stranger", "first"):
            lay(place, chained([*original, laid], len(original), keys[name]))
            said = found(place)
            assert said is not None
            assert (
                f"record 8: its signature is not by the key {keys['then'].key.public[:12]}" in said
            )
        # The control: by the key in force, it stands, but for a key without its proof.
        lay(place, chained([*original, laid], len(original), keys["then"]))
        said = found(place)
        assert said is None or "record 8: a key that follows another one has a proof" in said
        assert (said is None) == (draft["record"] != "key")


def test_a_ledger_that_a_stranger_writes_anew_is_not_the_one_that_is_trusted(
    place: Path, original: list[bytes], keys: dict[str, KeyFiles]
) -> None:
    """Replace all of it: not signed, signed by a stranger, and handed over to a trusted key.

    Kills: a key that is trusted because a record names it, though it has not signed that record.
    """
    stranger, trusted = keys["stranger"], keys["first"]
    bare = json.loads(original[0]) | {"schema_version": 1}
    del bare["key"], bare["signature"]
    unsigned = signed(bare, None)
    assert found(lay(place, [unsigned])) is None  # it is in order: only who knows the key sees it
    said = found(place, trusted)
    assert said is not None
    assert "is not signed, and public key says that it is" in said

    own = signed(json.loads(original[0]) | {"key": stranger.key.public}, stranger)
    assert found(lay(place, [own])) is None
    said = found(place, trusted)
    assert said is not None
    assert f"is signed by {stranger.key.public[:12]}, and not by public key" in said

    handed = {
        **{name: json.loads(original[6])[name] for name in ("created", "nonce")},
        "schema_version": 3,
        "number": 1,
        "previous": digest(own),
        "record": "key",
        "key": trusted.key.public,
    }
    proofs: list[str | None] = [None, "0" * 128, json.loads(original[6])["proof"]]
    proofs.append(json.loads(original[0])["signature"])
    for proof in proofs:
        fields = handed if proof is None else handed | {"proof": proof}
        said = found(lay(place, [own, signed(fields, stranger)]))
        assert said is not None
        assert "record 1: " in said
        assert "proof" in said


def test_a_cut_shows_by_the_head_alone(
    place: Path, original: list[bytes], keys: dict[str, KeyFiles]
) -> None:
    # Kills: a head that is not compared, or only if it is the last record's.
    lay(place, original)
    heads = [f"{number}:{digest(content)}" for number, content in enumerate(original)]
    assert Ledger.open(str(place), Trust()).head == heads[-1]
    for count in range(1, len(original) + 1):
        lay(place, original[:count])
        pin = keys["first"]
        assert found(place, pin) is None
        for number, head in enumerate(heads):
            said = found(place, pin, head)
            if number < count:
                assert said is None
                continue
            assert said is not None
            assert f"ends with record {count - 1}, and had record {number}: what came" in said
    assert "record 3 of" in str(found(place, None, heads[2].replace("2:", "3:")))
    for wrong in ("7", "7:abc", heads[0].upper() + "0", "-1:" + "0" * 64, "00:" + "0" * 64):
        assert "expected head: is not the number" in str(found(place, None, wrong))


def test_who_has_no_key_or_another_one_writes_nothing(
    folder: Path, keys: dict[str, KeyFiles]
) -> None:
    # Kills: a record that is not signed, or by the key that was in force when a run began.
    place = str(folder / "owned" / "ledger")
    corpus = folder / "owned" / "corpus"
    with configured(ledger_key=keys["first"].private):
        run = Ledger.init(place, terms(corpus))
        held = run.reserve(request(place, "a"))
    with configured():
        with Refused(place, "is signed; set QUIETCORPUS_LEDGER_KEY_FILE to the file of its key"):
            Ledger.open(place).reserve(request(place, "b"))
        with Refused(place, "is signed; set QUIETCORPUS_LEDGER_KEY_FILE"):
            acts.change_caps(place, terms(corpus, 12), "more")
        Ledger.open(place).foresee(request(place, "b"))  # a plan needs no key
        with Refused(place, "is signed; set QUIETCORPUS_LEDGER_KEY_FILE"):
            Ledger.open(place).admit(request(place, "b"), RUN)  # a run does
    with (
        configured(ledger_key=keys["stranger"].private),
        Refused(place, "and not by QUIETCORPUS_LEDGER_KEY_FILE"),
    ):
        Ledger.open(place)
    with configured(ledger_key=keys["first"].private):
        acts.rotate(place, keys["then"].key)
        with Refused(place, "the key is .* is in force in .* from record 2 on; name the file of"):
            run.commit(held, RUN, CARD)  # it began before
        with Refused(place, "the key is .* is in force in .* from record 2 on; name the file of"):
            Ledger.open(place).reserve(request(place, "b"))
        with Refused(place, f"the key {keys['first'].key.public[:12]} is or was in force"):
            acts.rotate(place, keys["first"].key)
    with configured(ledger_key=keys["then"].private):
        Ledger.open(place).commit(held, RUN, CARD)
        with Refused(place, f"the key {keys['first'].key.public[:12]} is or was in force"):
            acts.rotate(place, keys["first"].key)


def test_a_key_that_was_in_force_never_returns(
    place: Path, original: list[bytes], keys: dict[str, KeyFiles]
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
    said = found(lay(place, [*original, last]))
    assert said is not None
    assert f"record 8: the key {first.public[:12]} was in force before, and cannot return" in said


def test_a_ledger_without_signatures_is_signed_as_it_is(
    folder: Path, keys: dict[str, KeyFiles]
) -> None:
    """Open, verify, sign and go on; then no record before may change, and none be added unsigned.

    Kills: a sign-on that does not cover what was before; records that need no signature after it;
    a ledger that is read though it should be signed; a second sign-on.
    """
    place, corpus, first = folder / "older" / "ledger", folder / "older" / "corpus", keys["first"]
    with configured():
        ledger = Ledger.init(str(place), terms(corpus))
        ledger.reserve(request(str(place), "a"))
        assert all(b"signature" not in content for content in contents(place))
        with Refused(str(place), "QUIETCORPUS_LEDGER_KEY_FILE: not set; set it to the file"):
            acts.sign(str(place))
    with configured(ledger_key=first.private):
        with Refused(str(place), "is not signed, and QUIETCORPUS_LEDGER_KEY_FILE says that it is"):
            Ledger.open(str(place))
        verified = ledger.head
        with configured():
            ledger.reserve(request(str(place), "b", 1))
        with Refused(str(place), f"has records after {verified}; verify them, and sign again"):
            acts.sign(str(place), verified)
        assert acts.sign(str(place), ledger.head) == Ledger.open(str(place)).head
        with Refused(str(place), "is signed already, by the key"):
            acts.sign(str(place))
        Ledger.open(str(place)).reserve(request(str(place), "c", 1))
    whole = contents(place)
    assert found(place, first) is None
    assert ["signature" in json.loads(content) for content in whole] == [False] * 3 + [True] * 2
    # Of the records before: edited and chained anew, with and without the rest, or alone.
    edited = json.loads(whole[1]) | {"nonce": "0" * 32}
    other = [whole[0], (json.dumps(edited, indent=1) + "\n").encode(), *whole[2:]]
    for begin, rest in ((2, 5), (2, 3)):
        lay(place, chained(other[:rest], begin, None))
        assert found(place, first) is not None
    lay(place, whole[:3])
    assert "is not signed, and public key says that it is" in str(found(place, first))
    lay(place, chained(whole, 4, None))
    assert "record 4: it is not signed" in str(found(place))


def test_what_a_ledger_holds_is_signed_only_if_it_was_looked_at(
    folder: Path, keys: dict[str, KeyFiles], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Kills: a record that comes between the look and the signature, and is signed as well.
    place = str(folder / "raced" / "ledger")
    with configured():
        writer = Ledger.init(place, terms(folder / "raced" / "corpus"))
    create = Journal.append

    def late(journal: Journal, content: bytes) -> bool:
        if b'"record": "key"' in content and len(writer.records) == 1:
            with configured():
                writer.reserve(request(place, "a"))
        return create(journal, content)

    monkeypatch.setattr(Journal, "append", late)
    with (
        configured(ledger_key=keys["first"].private),
        pytest.raises(InputError, match=r"has records after 0:.*; verify them, and sign again"),
    ):
        acts.sign(place)
    assert [one.record for one in Ledger.open(place, Trust()).records] == ["opening", "reservation"]


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (lambda k: {"ledger_public_key": k["first"].public}, "would not be signed, and QUIETCOR"),
        (
            lambda k: {"ledger_key": k["then"].private, "ledger_public_key": k["first"].public},
            "would be signed by .*, and QUIETCORPUS_LEDGER_PUBLIC_KEY_FILE is",
        ),
    ],
)
def test_no_ledger_is_opened_that_its_own_key_would_refuse(
    tmp_path: Path,
    keys: dict[str, KeyFiles],
    files: Callable[[dict[str, KeyFiles]], dict[str, str]],
    said: str,
) -> None:
    # Kills: a ledger that is not signed though its public key is known.
    (tmp_path / "ledger").mkdir()
    place = str(tmp_path / "ledger")
    with configured(**files(keys)), Refused(place, said):
        Ledger.init(place, terms(tmp_path / "corpus"))


def test_a_public_key_of_the_environment_is_compared(
    place: Path, original: list[bytes], keys: dict[str, KeyFiles]
) -> None:
    # Kills: a reader who compares no key unless it is given one.
    lay(place, original)
    with configured(ledger_public_key=keys["then"].public):
        Ledger.open(str(place))
    with (
        configured(ledger_public_key=keys["stranger"].public),
        pytest.raises(InputError, match="and not by QUIETCORPUS_LEDGER_PUBLIC_KEY_FILE"),
    ):
        Ledger.open(str(place))


def test_a_record_of_a_later_version_or_a_clock_ahead(
    place: Path, folder: Path, original: list[bytes], keys: dict[str, KeyFiles]
) -> None:
    # Kills: a record from the future that is taken for damage, or that blocks nothing.
    newer = (json.dumps(json.loads(original[-1]) | {"schema_version": 4}, indent=1) + "\n").encode()
    lay(place, [*original[:-1], newer])
    assert "record 7: it was written by a newer version (schema 4)" in str(found(place))
    ahead = json.loads(original[-1]) | {"created": "2999-01-01T00:00:00Z"}
    lay(place, [*original[:-1], signed(ahead, keys["then"])])
    assert found(place, keys["then"]) is None
    with (
        configured(ledger_key=keys["then"].private),
        Refused(str(place), "before the last record's 2999-01-01 00:00: one of the two is wrong"),
    ):
        Ledger.open(str(place)).reserve(request(str(folder / "ledger"), "d", 1))
