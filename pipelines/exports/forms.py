"""The forms in which a card can be exported, and what only its publisher knows."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..card.model import Card
from ..card.verify import check_card, read_card
from ..storage.places import absolute
from . import croissant, datasheet, deployments, sp800_226
from .publisher import Publisher

FORMS: Mapping[str, Callable[[Card, Publisher], str]] = {
    "registry": deployments.render,
    "croissant": croissant.render,
    "sp800-226": sp800_226.render,
    "datasheet": datasheet.render,
}


def export(path: str, form: str, publisher: Publisher) -> str:
    """Return the card of a release in one of `FORMS`; nothing but release.json is read.

    Raises InputError if there is no card, if its budget and its guarantee do not agree, or if the
    form needs something of the publisher's that is missing.
    """
    output = absolute(path)
    card = read_card(output)
    check_card(output, card)
    return FORMS[form](card, publisher)
