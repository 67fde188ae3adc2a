"""The keys and the head of a ledger, as known from elsewhere than its place, and their check.

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

from ..environment.signing import (
    LEDGER_KEY,
    LEDGER_PUBLIC_KEY,
    configured_key,
    read_public_key,
)
from .records import digest
from .signatures import Signatures, short

_HEAD = re.compile(r"(0|[1-9][0-9]{0,7}):([0-9a-f]{64})")


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
    def configured(cls, public_key: str | None = None, head: str | None = None) -> Trust:
        """Return the keys that the environment names, and that in a PEM file; and a head.

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
        return cls(keys, _checked(head))

    @classmethod
    def of_head(cls, head: str | None) -> Trust:
        """Return the knowledge of a head alone."""
        return cls(head=_checked(head))

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
        number, expected = head.split(":")
        last = len(contents) - 1
        if int(number) > last:
            raise InputError(
                f"ledger: {uri} ends with record {last}, and had record {number}: what came after "
                f"record {last} was cut off; put it back"
            )
        if digest(contents[int(number)]) != expected:
            raise InputError(
                f"ledger: record {number} of {uri} is another one than it was: records were cut "
                "off, and others put in their place, or it is another ledger"
            )


def _checked(head: str | None) -> str | None:
    if head is not None and not _HEAD.fullmatch(head):
        raise InputError(
            "expected head: is not the number of a record and its digest, with a colon between; "
            "`quietcorpus ledger verify` prints it"
        )
    return head
