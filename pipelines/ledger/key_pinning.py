"""The signatures of a ledger's records, and the keys and the head that are trusted.

The signatures of a ledger's records: which key is in force, and whether each record is by it.

One key is in force at a time. It is signed on by the opening, or by a later record that signs all
before it, by their digests; and it is followed by the next one, which the one before has signed.
Every key countersigns the record that introduces it. So a reader who trusts any one of a ledger's
keys can trust the whole chain up to the last record, and an attacker who lacks all of them can add
nothing to it.

The keys and the head of a ledger, as known from elsewhere than its place, and their check.

Records that agree with one another show only that their writer had a key. A place cannot prove
whose key it is, nor that no record was cut off at the end.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from quietcorpus.transforms.errors import InputError

from ..environment.keys import (
    LEDGER_KEY,
    LEDGER_PUBLIC_KEY,
    SigningKey,
    configured_key,
    is_signed,
    read_public_key,
)
from .kept_head import KeptHead, has
from .records import HEAD, AnyRecord, NewCaps, NewKey, Opening
from .state import Impossible


class Signatures:
    """The keys of a ledger, as the records so far name them.

    Attributes:
        since: the number of the record that signs a key on, by public key, in order; the last key
            is in force.
    """

    def __init__(self) -> None:
        self.since: dict[str, int] = {}

    @property
    def key(self) -> str | None:
        """Return the public key in force; None while records are not signed."""
        return next(reversed(self.since), None)

    def admit(self, record: AnyRecord) -> None:
        """Check the next record's signature; raises Impossible if it has not the right one."""
        new = record.key if isinstance(record, Opening | NewKey) else None
        signer = self.key or new
        if signer is None:
            if record.signature is not None or isinstance(record, NewCaps):
                raise Impossible("it is for a signed ledger, and no record before names a key")
            return
        if record.signature is None:
            raise Impossible(f"it is not signed, though the key {short(signer)} is in force")
        if not is_signed(signer, bytes.fromhex(record.signature), record.signed_content):
            raise Impossible(
                f"its signature is not by the key {short(signer)}, or of another record"
            )
        if new is not None:
            self._sign_on(new, record)

    def _sign_on(self, new: str, record: AnyRecord) -> None:
        if new in self.since:
            raise Impossible(f"the key {short(new)} was in force before, and cannot return")
        if isinstance(record, NewKey):
            follows = self.key is not None
            if follows != (record.proof is not None):
                raise Impossible("a key that follows another one has a proof, and no other has one")
            if record.proof is not None and not is_signed(
                new, bytes.fromhex(record.proof), record.proven_content
            ):
                raise Impossible(f"its proof is not by the key {short(new)}")
        self.since[new] = record.number

    def require(self, own: SigningKey | None, uri: str) -> None:
        """Raise InputError unless a holder of this key may write to the ledger."""
        if self.key is None:
            return
        if own is None:
            raise InputError(
                f"ledger: {uri} is signed; set {LEDGER_KEY} to the file of its key "
                f"{short(self.key)}"
            )
        if own.public != self.key:
            raise InputError(
                f"{LEDGER_KEY}: the key is {short(own.public)}, and {short(self.key)} is in force "
                f"in {uri} from record {self.since[self.key]} on; name the file of that one"
            )

    def sign(
        self, record: AnyRecord, own: SigningKey | None, new: SigningKey | None, uri: str
    ) -> AnyRecord:
        """Return the next record with its signature, if it is to have one.

        Args:
            record: the record.
            own: the writer's key; InputError is raised if that is not in force.
            new: the key that it signs on, if it does.
            uri: the ledger's place, for people.
        """
        signer = new if self.key is None else own
        self.require(own, uri)
        if signer is None:
            return record
        if self.key is not None and new is not None and isinstance(record, NewKey):
            record = record.model_copy(update={"proof": new.sign(record.proven_content).hex()})
        return record.model_copy(update={"signature": signer.sign(record.signed_content).hex()})


def short(key: str) -> str:
    """Return the beginning of a public key, by which people tell it from others."""
    return key[:12]


@dataclass(frozen=True)
class Trust:
    """The public keys that must have signed a ledger, and a head that it must have had.

    Attributes:
        keys: the public keys, by what names them to people.
        head: the number and digest of a record that was the last one once.
    """

    keys: Mapping[str, str] = field(default_factory=dict)
    head: str | None = None

    @classmethod
    def configured(
        cls, public_key: str | None = None, head: str | None = None, *, begins: bool = False
    ) -> Trust:
        """Return the keys that the environment names, and that in a PEM file; and a head.

        Without `head`, the environment names the file that keeps it, which must be there unless
        this call `begins` it.

        Raises InputError for a file that holds no such key, and for a value that is not a head.
        """
        keys = {}
        own = configured_key(LEDGER_KEY)
        if own is not None:
            keys[LEDGER_KEY] = own.public
        if path := os.environ.get(LEDGER_PUBLIC_KEY):
            keys[LEDGER_PUBLIC_KEY] = read_public_key(LEDGER_PUBLIC_KEY, path)
        if public_key is not None:
            keys["public key"] = read_public_key("public key", public_key)
        return cls(keys, _head(head, begins=begins))

    @classmethod
    def of_head(cls, head: str | None) -> Trust:
        """Return the knowledge of a head alone: this one, else the one that is kept."""
        return cls(head=_head(head))

    def check(self, uri: str, signatures: Signatures, contents: Sequence[bytes]) -> None:
        """Raise InputError unless a ledger, whose records agree, is as it is known to be.

        Args:
            uri: its place, for people.
            signatures: the keys of its records.
            contents: the bytes of its records.
        """
        for name, key in self.keys.items():
            if not signatures.since:
                raise InputError(
                    f"ledger: {uri} is not signed, and {name} says that it is; if it never was, "
                    "sign it with `quietcorpus ledger sign`; else it was replaced, or cut"
                )
            if key not in signatures.since:
                found = ", ".join(short(one) for one in signatures.since)
                raise InputError(
                    f"ledger: {uri} is signed by {found}, and not by {name}, which is {short(key)}:"
                    " it was replaced, or that is the key of another ledger"
                )
        if self.head is not None:
            self._check_head(self.head, uri, contents)

    def of(self, signatures: Signatures) -> Literal["in force", "earlier"] | None:
        """Return which key of a ledger that was checked is known; None if none is."""
        if not self.keys:
            return None
        return "in force" if signatures.key in self.keys.values() else "earlier"

    def check_new(self, uri: str, key: str | None) -> None:
        """Raise InputError for a ledger that is about to be signed by a key that is not trusted."""
        for name, trusted in self.keys.items():
            if trusted != key:
                signed = "not be signed" if key is None else f"be signed by {short(key)}"
                raise InputError(
                    f"ledger: {uri} would {signed}, and {name} is {short(trusted)}; set "
                    f"{LEDGER_KEY} to the file of that key, or unset {name}"
                )

    @staticmethod
    def _check_head(head: str, uri: str, contents: Sequence[bytes]) -> None:
        number, last = head.partition(":")[0], len(contents) - 1
        adopt = "put it back, or count what was spent by `quietcorpus ledger adopt`"
        if int(number) > last:
            raise InputError(
                f"ledger: {uri} ends with record {last}, and had record {number}: what came after "
                f"record {last} was cut off, as a restored backup does; {adopt}"
            )
        if not has(contents, head):
            raise InputError(
                f"ledger: record {number} of {uri} is another one than it was: records were cut "
                f"off, and others put in their place, or it is another ledger; {adopt}"
            )


def _head(head: str | None, *, begins: bool = False) -> str | None:
    """Return the given head, checked, or else the one in the file that the environment names."""
    kept = KeptHead.configured()
    if head is None and kept is not None:
        return kept.read() if begins else kept.require()
    if head is not None and not re.fullmatch(HEAD, head):
        raise InputError(
            "expected head: is not the number of a record and its digest, with a colon between; "
            "`quietcorpus ledger verify` prints it"
        )
    return head
