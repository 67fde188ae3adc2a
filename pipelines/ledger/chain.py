"""The chain of a ledger's records, to which several writers add, one at a time."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from quietcorpus.transforms.errors import InputError, Unavailable
from quietcorpus.transforms.store_clock import StoreClock

from ..environment.signing import LEDGER_KEY, SigningKey, configured_key
from ..storage import places
from .journal import Damaged, Journal
from .records import (
    AnyRecord,
    Unreadable,
    digest,
    drafted,
    new_nonce,
    parse,
)
from .signatures import Signatures
from .state import Impossible, State
from .trust import Trust

Draft = dict[str, Any]
"""The fields of a record, without its number, the previous digest, the time, the nonce and the
signature."""

_ATTEMPTS = 1000
_LONGEST_PAUSES = (0.05, 1.0)
"""In seconds: on a disk, and in an object store, which answers more slowly."""
_SKEW = timedelta(minutes=5)
"""The clocks of several machines are assumed to differ by less."""


class Chain:
    """The records at a place, and the state that they add up to.

    Every method raises InputError for what a person can fix, which includes a damaged ledger, and
    Unavailable if other writers never pause. Nothing is written to a ledger that is not in order.

    Attributes:
        uri: the place.
        state: the state after all records that are read so far.
        records: these records, in order.
        signatures: the keys by which they are signed.
    """

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self.state = State()
        self.records: list[AnyRecord] = []
        self.signatures = Signatures()
        self._journal = Journal(uri)
        self._longest_pause = _LONGEST_PAUSES[not places.is_local(uri)]

    def load(self, trust: Trust | None = None) -> None:
        """Read all records, which must be there and as they are known to be.

        Without `trust`, the environment names the key to trust.
        """
        self.read()
        if not self.records:
            raise InputError(
                f"ledger: {self.uri} holds no ledger; open one with `quietcorpus ledger init`"
            )
        (trust or Trust.configured()).check(self.uri, self.signatures, self._journal.contents)

    def read(self) -> None:
        """Read all records, if there are any, by any signer."""
        try:
            self._journal.load()
            for content in self._journal.contents:
                self._take(content)
        except Damaged as error:
            raise self.damage(error) from None

    @property
    def head(self) -> str:
        """Return the number and the SHA-256 of the last record, which tell of all before it."""
        return f"{len(self.records) - 1}:{digest(self._journal.contents[-1])}"

    def require_key(self) -> None:
        """Raise InputError if the ledger is signed and the environment lacks the key in force."""
        self.signatures.require(configured_key(LEDGER_KEY), self.uri)

    def append(
        self, decide: Callable[[State], Any], new_key: SigningKey | None = None
    ) -> AnyRecord:
        """Append the draft that `decide` returns for the state, or return its existing record.

        If another writer is first, `decide` is called again on the new state. The record is signed
        if the ledger is, or if `new_key` is given, which the draft signs on.
        """
        own = configured_key(LEDGER_KEY)
        try:
            for attempt in range(_ATTEMPTS):
                decided = decide(self.state)
                if isinstance(decided, AnyRecord):
                    return decided
                record = self.complete(decided)
                content = self.signatures.sign(record, own, new_key, self.uri).to_bytes()
                if self._journal.append(content):
                    return self._take(content)
                pause = min(self._longest_pause, 0.001 * 2 ** min(attempt, 10))
                time.sleep(random.uniform(0, pause))  # noqa: S311 - a pause
                for added in self._journal.follow():
                    self._take(added)
        except Damaged as error:
            raise self.damage(error) from None
        raise Unavailable(f"ledger: {self.uri} changes again and again; run again later")

    def complete(self, draft: Draft) -> AnyRecord:
        """Return the next record, without a signature.

        Raises StoreUnavailable if the clock, by which it is dated, is known to be wrong.
        """
        StoreClock.require_agreement()
        now = datetime.now(UTC)
        if self.records:
            last = self.records[-1].created
            if now < last - _SKEW:
                raise InputError(
                    f"ledger: the clock says {now:%Y-%m-%d %H:%M} UTC, before the last record's "
                    f"{last:%Y-%m-%d %H:%M}: one of the two is wrong; set this clock, or wait"
                )
            now = max(now, last)  # records stay in order, whatever their writers' clocks say
        contents = self._journal.contents
        common = {
            "number": len(self.records),
            "previous": digest(contents[-1]) if contents else None,
            "created": now,
            "nonce": new_nonce(),
        }
        return drafted(common | draft)

    def damage(self, error: Damaged) -> InputError:
        """Return the error for a person, of damage that was found."""
        return InputError(
            f"ledger: {self.uri} is damaged: {error}; nothing is spent from it until it is fixed: "
            "see `quietcorpus ledger verify`"
        )

    def _take(self, content: bytes) -> AnyRecord:
        """Add one more record to the state; raises Damaged if it is not the next one."""
        number = len(self.records)
        try:
            record = parse(content)
            before = digest(self._journal.contents[number - 1]) if number else None
            if (record.number, record.previous) != (number, before):
                raise Impossible("it does not follow the record before it")
            if number and record.created < self.records[-1].created:
                raise Impossible("it is older than the record before it")
            self.signatures.admit(record)
            self.state.add(record)
        except (Unreadable, Impossible) as error:
            raise Damaged(f"record {number}: {error}") from None
        self.records.append(record)
        return record
