"""The signatures of a ledger's records: which key is in force, and whether each record is by it.

One key is in force at a time. It is signed on by the opening, or by a later record that signs all
before it, by their digests; and it is followed by the next one, which the one before has signed.
Every key countersigns the record that introduces it. So a reader who trusts any one of a ledger's
keys can trust the whole chain up to the last record, and an attacker who lacks all of them can add
nothing to it.
"""

from __future__ import annotations

from quietcorpus.transforms.errors import InputError

from ..environment.signing import LEDGER_KEY, SigningKey, is_signed
from .records import AnyRecord, NewCaps, NewKey, Opening
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
