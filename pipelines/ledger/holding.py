"""What a release does with its ledger: reserve before it reads, commit before it publishes."""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass, replace

from mechanisms.guarantees import ceiling
from mechanisms.keystream import ReleaseKey
from pipelines import card
from pipelines.claims import keyed
from pipelines.kind import Kind
from pipelines.ledger.book import Ledger, Request
from pipelines.ledger.caps import Cost
from pipelines.ledger.records import Reservation, digest
from pipelines.spec import Spec
from transforms.errors import StageError

_LOGGER = logging.getLogger("quietcorpus.ledger")


@dataclass(frozen=True)
class Held:
    """A reservation that this run holds.

    Attributes:
        ledger: where.
        reservation: the record.
        identity: a keyed digest of all that the release's bytes depend on.
    """

    ledger: Ledger
    reservation: Reservation
    identity: str

    @property
    def created(self) -> str:
        """When it was reserved, which the card says: a run that goes on makes the same card."""
        return self.reservation.created.isoformat(timespec="seconds")

    @property
    def on_the_card(self) -> card.Counted:
        """What the card says of it."""
        found = self.reservation
        return card.Counted(
            reservation=found.number,
            record_sha256=digest(found.to_bytes()),
            partition=found.partition,
        )

    def commit(self, made: card.Card, identifiers: bytes | None) -> None:
        """Spend it, if no other partition has any of these documents.

        Raises StageError if the release cost anything else than was reserved.
        """
        if made.budget.total != self.reservation.guarantee:
            raise StageError("ledger: the release cost something else than was reserved for it")
        text = made.to_json().encode()
        card_sha256 = hashlib.sha256(text).hexdigest()
        self.ledger.commit(self.reservation, self.identity, card_sha256, identifiers)


def hold(spec: Spec, kind: Kind, key: ReleaseKey, identity: str) -> Held | None:
    """Reserve what a release costs; None for a spec without a ledger.

    Raises InputError if the cap would be passed, or the ledger cannot be used.
    """
    if spec.ledger is None:
        return None
    ledger = Ledger.open(spec.ledger.path)
    compared = key.comparing if spec.ledger.partition and spec.input.id else None
    asked = request(spec, kind, keyed(key, "ledger", (spec, list(kind.artefacts))))
    reservation = ledger.reserve(replace(asked, compared=compared))
    ledger.check_identity(reservation, identity)
    for charged in reservation.charges:
        _LOGGER.info(
            "reserved epsilon %s of the account %s as record %d of the ledger: it stays reserved "
            "if this run fails, and the same command goes on with it",
            ceiling(charged.charge.epsilon),
            ledger.state.caps[charged.account].title,
            reservation.number,
        )
    return Held(ledger, reservation, identity)


def request(spec: Spec, kind: Kind, run: str) -> Request:
    """What a release asks its ledger for."""
    assert spec.ledger is not None
    return Request(
        spec.release,
        run,
        spec.input.path,
        spec.output,
        spec.ledger.partition,
        Cost(kind.cost, kind.whose),
    )
