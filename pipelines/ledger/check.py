"""Whether a ledger is in order, and agrees with the cards of its releases."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from apache_beam.io.filesystem import BeamIOError

from pipelines import storage
from pipelines.card import Card
from pipelines.ledger.book import Ledger
from pipelines.ledger.records import Commit, Reservation, digest
from pipelines.spec_values import absolute
from transforms.errors import InputError


@dataclass(frozen=True)
class Finding:
    """What was found of one release: `wrong` if the ledger and its card do not agree."""

    release: str
    says: str
    wrong: bool


def findings(ledger: Ledger) -> list[Finding]:
    """Every reservation of a ledger in good order, against what lies at its output."""
    return [
        _finding(one, ledger.state.commits.get(number))
        for number, one in ledger.state.reservations.items()
    ]


def verify_counted(path: str, card: Card, place: str) -> None:
    """Raise InputError unless the ledger at a place counts the release at a path, of this card."""
    content = storage.read_bytes(f"{absolute(path)}/{storage.CARD}")
    ledger = Ledger.open(absolute(place))
    if card.ledger is None:
        raise InputError(f"ledger: the card of {card.release} names no reservation")
    number = card.ledger.reservation
    reservation = ledger.state.reservations.get(number)
    commit = ledger.state.commits.get(number)
    if reservation is None or commit is None:
        raise InputError(f"ledger: {ledger.uri} has not committed record {number}")
    if card.reconstruction is not None:  # whatever it says of itself
        raise InputError(
            f"ledger: {card.release} was reconstructed from a release that {ledger.uri} counts, at "
            f"{reservation.output}; verify that one"
        )
    said = _disagreement(card, content, reservation, commit)
    if said:
        raise InputError(f"ledger: {ledger.uri} and the card of {card.release} disagree: {said}")


def _finding(reservation: Reservation, commit: Commit | None) -> Finding:
    uri = f"{reservation.output}/{storage.CARD}"
    try:
        content = storage.read_bytes(uri) if storage.exists(uri) else None
    except (OSError, BeamIOError, ValueError):
        return Finding(reservation.release, f"{uri} cannot be read", wrong=True)
    if content is None:
        said = "reserved, not published yet" if commit is None else "committed, not at its place"
        return Finding(reservation.release, said, wrong=False)
    if commit is None:
        return Finding(reservation.release, "published, but not committed", wrong=True)
    try:
        card = Card.model_validate_json(content)
    except ValueError:
        return Finding(reservation.release, f"{uri} is no card", wrong=True)
    said = _disagreement(card, content, reservation, commit)
    return Finding(reservation.release, said or "committed, and its card agrees", wrong=bool(said))


def _disagreement(card: Card, content: bytes, reservation: Reservation, commit: Commit) -> str:
    """In what a card and the records differ; empty if they agree."""
    if card.ledger is None or card.release != reservation.release:
        return "the card is not of this reservation"
    if card.ledger.record_sha256 != digest(reservation.to_bytes()):
        return "the card names another record"
    if card.ledger.partition != reservation.partition:
        return "the card names another partition"
    if card.budget.total != reservation.guarantee:
        return "the card has another cost"
    if commit.card_sha256 != hashlib.sha256(content).hexdigest():
        return "release.json is not the one that was committed"
    return ""
