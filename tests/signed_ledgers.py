"""Ledgers whose records are signed, in a folder, and what somebody without their keys writes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ledger_requests import CARD, RUN, request, terms
from signing_keys import KeyFiles, configured

from quietcorpus.pipelines.ledger import chain
from quietcorpus.pipelines.ledger.book import Ledger
from quietcorpus.pipelines.ledger.key_pinning import Trust
from quietcorpus.pipelines.ledger.records import digest, drafted
from quietcorpus.transforms.errors import InputError

KINDS = ["opening", "reservation", "reservation", "commit", "cancellation", "caps", "key"]
KINDS += ["reservation"]
"""The records of `write`."""


def write(folder: Path, first: KeyFiles, then: KeyFiles) -> Path:
    """Write a ledger of a record of every kind but a refusal, by one key and then another."""
    place, corpus = str(folder / "ledger"), folder / "corpus"
    with configured(ledger_key=first.private):
        ledger = Ledger.init(place, terms(corpus))
        found = ledger.reserve(request(place, "a"))
        ledger.reserve(request(place, "b"))
        ledger.commit(found, RUN, CARD)
        ledger.cancel("b", "a trial")
        chain.change_caps(place, terms(corpus, 12), "more is asked for")
        chain.rotate(place, then.key)
    with configured(ledger_key=then.private):
        Ledger.open(place).reserve(request(place, "c"))
    assert [record.record for record in Ledger.open(place).records] == KINDS
    return Path(place)


def contents(folder: Path) -> list[bytes]:
    """The records of a ledger, in order."""
    return [path.read_bytes() for path in sorted(folder.glob("*.json"))]


def lay(folder: Path, records: Sequence[bytes]) -> Path:
    """Lay out records as a ledger, each with its seal: anybody who can write there can."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for number, content in enumerate(records):
        name = f"{number:08d}.json"
        (folder / name).write_bytes(content)
        (folder / f"{number:08d}.sha256").write_text(f"{digest(content)}  {name}\n")
    return folder


def chained(records: Sequence[bytes], begin: int, key: KeyFiles | None) -> list[bytes]:
    """Number and chain records anew from one on, and sign them by a key; without one, by none."""
    found = list(records[:begin])
    for number, content in enumerate(records[begin:], begin):
        fields = json.loads(content)
        fields |= {"number": number, "previous": digest(found[-1]) if found else None}
        found.append(signed(fields, key))
    return found


def signed(fields: dict[str, Any], key: KeyFiles | None) -> bytes:
    """A record of these fields, by a key of somebody's own, which it names where it names one."""
    fields = {name: value for name, value in fields.items() if name != "signature"}
    record = drafted(fields)
    if key is None:
        return record.to_bytes()
    signature = key.key.sign(record.signed_content).hex()
    return record.model_copy(update={"signature": signature}).to_bytes()


def found(place: Path, pin: KeyFiles | None = None, head: str | None = None) -> str | None:
    """Return what is told of a ledger that is spoiled; None if it opens. Nothing is written."""
    before, said = sorted(place.iterdir()), None
    with configured():
        try:
            Ledger.open(str(place), Trust.configured(pin and pin.public, head))
        except InputError as error:
            said = str(error)
    assert "\n" not in (said or "")
    assert sorted(place.iterdir()) == before
    return said
