"""The way out for a ledger that has lost records: what was spent is counted, and it goes on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from quietcorpus.transforms.errors import InputError, client_errors

from ..card.model import Card
from ..storage import files as storage
from ..storage import layout
from .beside import uncounted
from .book import Ledger
from .kept_head import KeptHead
from .key_pinning import Trust


def adopt(uri: str, places: Sequence[str], reason: str) -> list[str]:
    """Count releases whose records a ledger has lost, by their cards; return their ids.

    If the head that is kept elsewhere is lost, the ledger goes on without it. A call that was
    interrupted can be repeated.
    """
    if not reason.strip():
        raise InputError("reason: is empty; say how the records were lost")
    kept = KeptHead.configured()
    head = kept.read() if kept else None
    trust = replace(Trust.configured(begins=True), head=None)
    ledger = Ledger.open(uri, trust)
    lost = head if head is not None and not ledger.has(head) else None
    if not places and lost is None:
        raise InputError(f"ledger: {uri} has lost no record that is known; name a release")
    read = [(place, *_card_at(place)) for place in places]
    found = [ledger.adopt(card, content, place, reason) for place, card, content in read]
    outputs = [one.output for one in ledger.state.reservations.values()]
    left = uncounted(ledger, outputs, trust)
    if left:
        raise InputError(
            f"ledger: {uri} also lacks the record of {left[0].release} at {left[0].place}; name "
            "every release that it has lost"
        )
    if lost is not None:
        ledger.accept(lost, reason)
    elif head is not None:
        ledger.keep_head()
    return [one.release for one in found]


def _card_at(place: str) -> tuple[Card, bytes]:
    """Read the card of a release; raises InputError if there is none."""
    uri = f"{place}/{layout.CARD}"
    with client_errors(uri, "cannot be read; check the path and the permissions"):
        content = storage.read_bytes(uri)
    try:
        return Card.model_validate_json(content), content
    except ValueError:
        raise InputError(f"{uri}: is not a card that this version reads") from None
