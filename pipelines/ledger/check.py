"""Checks of a ledger against the cards of its releases."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from quietcorpus.transforms.errors import InputError, Unavailable, blamed, client_errors
from quietcorpus.transforms.outages import outage

from ..card.model import Card
from ..card.parameters import NoiseEntry
from ..storage import files as storage
from ..storage import layout
from ..storage.places import absolute
from .beside import uncounted
from .book import Ledger
from .key_pinning import Trust
from .records import Adoption, Commit, Reservation, digest


@dataclass(frozen=True)
class CheckedRelease:
    """The finding about one release.

    Attributes:
        release: the release's id.
        says: the finding, for people.
        wrong: whether the ledger and the release's card disagree.
        missing: whether the release is committed, but no card is at its place.
    """

    release: str
    says: str
    wrong: bool = False
    missing: bool = False


@dataclass(frozen=True)
class CheckedLedger:
    """The finding about a ledger whose records are in order.

    Attributes:
        head: the number and the SHA-256 of the last record, with a colon between: who keeps it
            elsewhere can see later whether records were cut off.
        signed_by: the public key in force, hexadecimal; None if the records are not signed.
        signed_since: the number of the first record that is signed; it signs those before as well.
        trusted: whether a key that is known from elsewhere is the one in force, or an earlier one;
            None if none was given.
        releases: the finding about each release.
    """

    head: str
    signed_by: str | None
    signed_since: int | None
    trusted: Literal["in force", "earlier"] | None
    releases: list[CheckedRelease]


def checked(uri: str, trust: Trust, *, keeps_head: bool = False) -> CheckedLedger:
    """Check all records of a ledger, what is known of it, and the cards of its releases.

    With `keeps_head`, the head is kept where the environment says, unless a release disagrees.
    """
    ledger = Ledger.open(uri, trust)
    ledger.check_identifiers()
    found = [*findings(ledger), *_lost(ledger, trust)]
    if keeps_head and not any(one.wrong for one in found):
        ledger.keep_head()
    return CheckedLedger(
        head=ledger.head,
        signed_by=ledger.signatures.key,
        signed_since=next(iter(ledger.signatures.since.values()), None),
        trusted=trust.of(ledger.signatures),
        releases=found,
    )


def _lost(ledger: Ledger, trust: Trust) -> list[CheckedRelease]:
    """Return the releases beside those of a ledger that name records which it lacks."""
    outputs = [one.output for one in ledger.state.reservations.values()]
    return [
        CheckedRelease(
            one.release,
            f"published at {one.place}, and its record {one.head.partition(':')[0]} is lost: see "
            "`quietcorpus ledger adopt`",
            wrong=True,
        )
        for one in uncounted(ledger, outputs, trust)
    ]


def findings(ledger: Ledger) -> list[CheckedRelease]:
    """Check every reservation of an intact ledger against the card at its output."""
    return [
        _finding(one, ledger.state.commits.get(number), refused=number in ledger.state.refusals)
        for number, one in ledger.state.reservations.items()
    ]


def refuse(found: Sequence[CheckedRelease]) -> None:
    """Raise InputError for releases that disagree, and Unavailable for missing ones."""
    wrong = [one for one in found if one.wrong]
    missing = [one for one in found if one.missing]
    if wrong:
        raise InputError(
            f"ledger: {len(wrong)} of {len(found)} releases do not agree with it; "
            f"{wrong[0].release}: {wrong[0].says}"
        )
    if missing:
        raise Unavailable(
            f"ledger: {len(missing)} of {len(found)} releases are not at their places; "
            f"{missing[0].release}: {missing[0].says}; put it back, or {layout.CARD} alone"
        )


def verify_counted(path: str, card: Card, place: str) -> None:
    """Raise InputError unless the ledger at `place` counts the release at `path` with this card."""
    uri = f"{absolute(path)}/{layout.CARD}"
    with client_errors(uri, "cannot be read; check the path and the permissions"):
        content = storage.read_bytes(uri)
    ledger = Ledger.open(absolute(place))
    if card.ledger is None:
        raise InputError(f"ledger: the card of {card.release} names no reservation")
    adopted = ledger.state.adopted.get(f"{card.ledger.reservation}:{card.ledger.record_sha256}")
    number = adopted.number if adopted else card.ledger.reservation
    reservation = ledger.state.reservations.get(number)
    commit = ledger.state.commits.get(number)
    if reservation is None or commit is None:
        raise InputError(f"ledger: {ledger.uri} has not committed record {number}")
    if card.reconstruction is not None:  # whichever record its card names
        raise InputError(
            f"ledger: {card.release} was reconstructed from a release that {ledger.uri} counts, at "
            f"{reservation.output}; verify that one"
        )
    if getattr(card.mechanism, "variation", None) is not None:
        raise InputError(
            f"ledger: the texts of {card.release} were varied, and {ledger.uri} counts the release "
            f"that they were made from, at {reservation.output}; verify that one"
        )
    said = _disagreement(card, content, reservation, commit)
    if said:
        raise InputError(f"ledger: {ledger.uri} and the card of {card.release} disagree: {said}")


def _finding(
    reservation: Reservation, commit: Commit | Adoption | None, *, refused: bool
) -> CheckedRelease:
    uri = f"{reservation.output}/{layout.CARD}"
    try:
        content = storage.read_bytes(uri) if storage.exists(uri) else None
    except Exception as error:  # every object store's client has its own
        if outage(error):
            raise blamed(error, f"ledger: {uri}", "cannot be read") from None
        return CheckedRelease(reservation.release, f"{uri} cannot be read", wrong=True)
    if content is None and commit is None:
        said = (
            "refused, or failed, in a way that may depend on its noise: spent"
            if refused
            else "reserved, not published yet"
        )
        return CheckedRelease(reservation.release, said)
    if content is None:
        said = f"committed, not at its place {reservation.output}"
        return CheckedRelease(reservation.release, said, missing=True)
    if commit is None:
        return CheckedRelease(reservation.release, "published, but not committed", wrong=True)
    try:
        card = Card.model_validate_json(content)
    except ValueError:
        return CheckedRelease(reservation.release, f"{uri} is not a card", wrong=True)
    said = _disagreement(card, content, reservation, commit)
    return CheckedRelease(
        reservation.release, said or "committed, and its card agrees", wrong=bool(said)
    )


def _disagreement(
    card: Card, content: bytes, reservation: Reservation, commit: Commit | Adoption
) -> str:
    """Return how a card and the records differ; empty if they agree."""
    own = card.ledger
    if own is None or card.release != reservation.release:
        return "the card is not of this reservation"
    noise = NoiseEntry.of(reservation.noise.cost) if reservation.noise else None
    adopted = isinstance(reservation, Adoption)
    named = f"{own.reservation}:{own.record_sha256}"
    of_record = f"{reservation.number}:{digest(reservation.to_bytes())}"
    compared = {
        "the card names another record": named
        == (reservation.lost if isinstance(reservation, Adoption) else of_record),
        "the card names another partition": adopted or own.partition == reservation.partition,
        "the card has another unit": own.whose in (None, reservation.whose),
        "the card has other noise": own.noise == noise,
        "the card has another cost": card.budget.total == reservation.guarantee,
        "release.json is not the one that was committed": (
            commit.card_sha256 == hashlib.sha256(content).hexdigest()
        ),
    }
    return next((said for said, agree in compared.items() if not agree), "")
