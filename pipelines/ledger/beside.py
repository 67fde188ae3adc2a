"""The cards beside an output: which of them name records that a ledger has lost.

A release is published after its records are written. So a card that names a record of this ledger,
which the ledger lacks, shows that records were lost: its budget was spent, and is not counted.
"""

from __future__ import annotations

import json
import logging
import os
import posixpath
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from quietcorpus.transforms.errors import InputError, blamed
from quietcorpus.transforms.outages import outage

from ..storage import layout, places, stores
from .book import Ledger
from .key_pinning import Trust

_LOGGER = logging.getLogger("quietcorpus.ledger")
_AT_ONCE = 16


@dataclass(frozen=True)
class NamedRecord:
    """A record that the card of a release names.

    Attributes:
        place: the release's place.
        release: its id.
        head: the number and the SHA-256 of the record that reserved its budget.
        opening: the SHA-256 of its ledger's first record.
    """

    place: str
    release: str
    head: str
    opening: str


def uncounted(
    ledger: Ledger, outputs: Iterable[str], trust: Trust | None = None
) -> list[NamedRecord]:
    """Return the records of this ledger that cards beside these outputs name, and that it lacks.

    Cards of earlier versions name no ledger, and are left out. A card that cannot be read is warned
    of. Raises Unavailable where a store does not answer.
    """
    folders = sorted({folder for output in outputs if (folder := _parent(output))})
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        places_of = [place for folder in folders for place in _children(folder)]
        cards = [card for card in pool.map(_named, places_of) if card is not None]
    lost = [card for card in cards if _is_lost(ledger, card)]
    if lost:  # another run may have published since this ledger was read
        again = Ledger.open(ledger.uri, trust)
        lost = [card for card in lost if _is_lost(again, card)]
    return lost


def require_counted(ledger: Ledger, output: str) -> None:
    """Raise InputError if a card beside an output names a record that the ledger has lost."""
    lost = uncounted(ledger, [output])
    if lost:
        raise InputError(_told(ledger.uri, lost))


def _told(uri: str, lost: Sequence[NamedRecord]) -> str:
    first, others = lost[0], len(lost) - 1
    more = f" ({others} more like it)" if others else ""
    return (
        f"ledger: {uri} lacks record {first.head.partition(':')[0]}, which the card of "
        f"{first.release} at {first.place} names{more}: it lost records, as a restored backup "
        f"does; put them back, or count what was spent: `quietcorpus ledger adopt {uri} "
        f"{first.place} --reason ...`"
    )


def _is_lost(ledger: Ledger, card: NamedRecord) -> bool:
    return card.opening == ledger.opening and not ledger.has(card.head)


def _parent(output: str) -> str | None:
    """Return the folder that an output lies in; None if it is a whole bucket."""
    folder = posixpath.dirname(output)
    return None if folder.endswith(":/") or folder == output else folder


def _children(folder: str) -> list[str]:
    """Return the folders in a folder."""
    try:
        if not places.is_local(folder):
            return [f"{folder}/{name}" for name in stores.folders(folder)]
        with os.scandir(folder) as found:
            return sorted(one.path for one in found if one.is_dir())
    except FileNotFoundError:
        return []
    except Exception as error:  # every object store's client has its own
        _pass_over(folder, error)
        return []


def _named(place: str) -> NamedRecord | None:
    """Return the record that the card at a place names; None if there is none, or no card."""
    uri = f"{place}/{layout.CARD}"
    try:
        content = _content(uri)
        return None if content is None else _record_in(json.loads(content), place)
    except (ValueError, RecursionError):
        return None  # not a card
    except Exception as error:  # every object store's client has its own
        _pass_over(uri, error)
        return None


def _content(uri: str) -> bytes | None:
    if not places.is_local(uri):
        found = stores.read(uri)
        return None if found is None else found[0]
    try:
        with open(uri, "rb") as stream:
            return stream.read()
    except (FileNotFoundError, NotADirectoryError):
        return None


def _record_in(content: Any, place: str) -> NamedRecord | None:
    """Return the record that a card's content names, whichever version wrote the rest of it."""
    entry = content.get("ledger") if isinstance(content, dict) else None
    if not isinstance(entry, dict):
        return None
    number, sha256 = entry.get("reservation"), entry.get("record_sha256")
    opening = entry.get("opening_sha256")
    if not (isinstance(number, int) and isinstance(sha256, str) and isinstance(opening, str)):
        return None
    return NamedRecord(place, str(content.get("release")), f"{number}:{sha256}", opening)


def _pass_over(place: str, error: Exception) -> None:
    """Warn of what cannot be read; raises StoreUnavailable for an outage."""
    if outage(error):
        raise blamed(error, f"output: {place}", "cannot be read") from None
    _LOGGER.warning(
        "%s cannot be read: whether the ledger counts what is there was not compared", place
    )
