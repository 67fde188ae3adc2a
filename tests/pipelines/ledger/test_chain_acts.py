"""The acts by which a ledger is signed and handed to another key, and who may write to it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ledger_requests import CARD, RUN, Refused, request, terms
from signed_ledgers import chained, contents, found, lay
from signing_keys import KeyFiles, configured

from quietcorpus.pipelines.ledger import chain
from quietcorpus.pipelines.ledger.book import Ledger
from quietcorpus.pipelines.ledger.chain import Journal
from quietcorpus.pipelines.ledger.key_pinning import Trust
from quietcorpus.transforms.errors import InputError


def test_who_has_no_key_or_another_one_writes_nothing(
    tmp_path: Path, keys: dict[str, KeyFiles]
) -> None:
    # Kills: a record that is not signed, or by the key that was in force when a run began.
    place = str(tmp_path / "owned" / "ledger")
    corpus = tmp_path / "owned" / "corpus"
    with configured(ledger_key=keys["first"].private):
        run = Ledger.init(place, terms(corpus))
        held = run.reserve(request(place, "a"))
    with configured():
        with Refused(place, "is signed; set QUIETCORPUS_LEDGER_KEY_FILE to the file of its key"):
            Ledger.open(place).reserve(request(place, "b"))
        with Refused(place, "is signed; set QUIETCORPUS_LEDGER_KEY_FILE"):
            chain.change_caps(place, terms(corpus, 12), "more")
        Ledger.open(place).foresee(request(place, "b"))  # a plan needs no key
        with Refused(place, "is signed; set QUIETCORPUS_LEDGER_KEY_FILE"):
            Ledger.open(place).admit(request(place, "b"), RUN)  # a run does
    with (
        configured(ledger_key=keys["stranger"].private),
        Refused(place, "and not by QUIETCORPUS_LEDGER_KEY_FILE"),
    ):
        Ledger.open(place)
    with configured(ledger_key=keys["first"].private):
        chain.rotate(place, keys["then"].key)
        with Refused(place, "the key is .* is in force in .* from record 2 on; name the file of"):
            run.commit(held, RUN, CARD)  # it began before
        with Refused(place, "the key is .* is in force in .* from record 2 on; name the file of"):
            Ledger.open(place).reserve(request(place, "b"))
        with Refused(place, f"the key {keys['first'].key.public[:12]} is or was in force"):
            chain.rotate(place, keys["first"].key)
    with configured(ledger_key=keys["then"].private):
        Ledger.open(place).commit(held, RUN, CARD)
        with Refused(place, f"the key {keys['first'].key.public[:12]} is or was in force"):
            chain.rotate(place, keys["first"].key)


def test_a_ledger_without_signatures_is_signed_as_it_is(
    tmp_path: Path, keys: dict[str, KeyFiles]
) -> None:
    """Open, verify, sign and go on; then no record before may change, and none be added unsigned.

    Kills: a sign-on that does not cover what was before; records that need no signature after it;
    a ledger that is read though it should be signed; a second sign-on.
    """
    place, corpus, first = (
        tmp_path / "older" / "ledger",
        tmp_path / "older" / "corpus",
        keys["first"],
    )
    with configured():
        ledger = Ledger.init(str(place), terms(corpus))
        ledger.reserve(request(str(place), "a"))
        assert all(b"signature" not in content for content in contents(place))
        with Refused(str(place), "QUIETCORPUS_LEDGER_KEY_FILE: not set; set it to the file"):
            chain.sign(str(place))
    with configured(ledger_key=first.private):
        with Refused(str(place), "is not signed, and QUIETCORPUS_LEDGER_KEY_FILE says that it is"):
            Ledger.open(str(place))
        verified = ledger.head
        with configured():
            ledger.reserve(request(str(place), "b", 1))
        with Refused(str(place), f"has records after {verified}; verify them, and sign again"):
            chain.sign(str(place), verified)
        assert chain.sign(str(place), ledger.head) == Ledger.open(str(place)).head
        with Refused(str(place), "is signed already, by the key"):
            chain.sign(str(place))
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
    tmp_path: Path, keys: dict[str, KeyFiles], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Kills: a record that comes between the look and the signature, and is signed as well.
    place = str(tmp_path / "raced" / "ledger")
    with configured():
        writer = Ledger.init(place, terms(tmp_path / "raced" / "corpus"))
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
        chain.sign(place)
    assert [one.record for one in Ledger.open(place, Trust()).records] == ["opening", "reservation"]
