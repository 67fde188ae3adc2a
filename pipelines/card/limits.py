"""The limits of a guarantee: the lines of a card on what its release does not protect.

They follow from the rest of the card, and from two facts that it does not state: whether the ids
of the input were compared, and whether the master key can be guessed. A release writes the lines by
these functions, and `verify` computes them again.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

from quietcorpus.mechanisms.accounting.guarantees import (
    DocumentPrivacy,
    Guarantee,
    Spending,
    UserPrivacy,
)

from ..schema.values import NEEDED, Disjoint, Reason
from . import statements
from .model import Card
from .variation import UNCHECKED
from .weakness import GUESSED, Weakness, accepted, of_documents, of_guarantee


class Facts(NamedTuple):
    """The facts of a release that the lines of every kind follow from.

    Attributes:
        total: the guarantee in all.
        accept: the reasons that the publisher has accepted.
        columns: the released names of the copied columns, in order.
        id_column: the input's column that is copied as `id`, if one is.
        counted: whether a ledger counts the release.
        disjoint: how the ledger knows that partitions have no document in common, if it has any.
        identifier: the column of the ids that were compared for that.
        unique: whether the input has a column of ids, in which no document comes twice.
    """

    total: Guarantee
    accept: Sequence[Reason]
    columns: Sequence[str]
    id_column: str | None
    counted: bool
    disjoint: Disjoint | None
    identifier: str | None
    unique: bool


def of_release(facts: Facts, own: Sequence[str]) -> list[str]:
    """Return the lines after the weaknesses; `own` are those of the kind."""
    whole = isinstance(facts.total, DocumentPrivacy | UserPrivacy)
    return [
        *accepted(facts.accept),
        *_of_number(facts),
        *([] if whole else _of_documents(facts)),
        *_of_partitions(facts.disjoint, facts.identifier),
        *own,
        "what other releases of the corpus say: the costs of all of them add up, and so do those "
        f"of a corpus and of its altered version, under whatever ids ({_of_ids(facts.counted)})",
        "anything against an adversary who holds the master key, or breaks AES-256 or BLAKE2b",
    ]


def problem(card: Card, *, exact: bool) -> str | None:
    """Return how the lines of a card differ from those that follow from it; None if they do not.

    Unless `exact`, as for a card that other code wrote, a line counts by its subject alone, and
    other lines may stand beside it.
    """
    own = card.mechanism.limits(_spendings(card), card.artefacts)
    if own is None:
        return None
    known = card.id_column is not None or (card.ledger and card.ledger.identifier is not None)
    # For each line, all forms that it may have.
    forms = list(zip(*(_lines(card, own, unique) for unique in {True, bool(known)}), strict=True))
    given = card.guarantee.not_protected
    if not exact:
        subjects = {_EARLIER.get(one, one) for one in map(_subject, given)}
        missing = [one[0] for one in forms if not subjects & set(map(_subject, one))]
    else:
        missing = [one[0] for one in forms if not set(given) & set(one)]
    if missing:
        return f"it does not say that this is not protected: {_subject(missing[0])}"
    found = _weaknesses(card)
    if card.counts is not None:
        found += of_documents(card.budget.total.guarantee, card.counts.documents)
    needed = {one.reason for one in found if one.reason}
    if not needed <= set(card.accepted or ()):
        return "what is refused otherwise was not accepted by name"
    return _excess(card, forms) if exact else None


def _excess(card: Card, forms: Sequence[tuple[str, ...]]) -> str | None:
    """Return the fault of lines besides their presence; None if there is none."""
    given = card.guarantee.not_protected
    expected = {line for one in forms for line in one} | {GUESSED}
    added = [n for n, line in enumerate(given) if line not in expected]
    if added:
        return f"line {added[0] + 1} does not follow from the card"
    order = [next((n for n, one in enumerate(forms) if line in one), -1) for line in given]
    if len(set(given)) < len(given) or [n for n in order if n >= 0] != list(range(len(forms))):
        return "its lines are not in order, or one stands twice"
    return None


def _lines(card: Card, own: Sequence[str], unique: bool) -> list[str]:
    total, ledger = card.budget.total.guarantee, card.ledger
    facts = Facts(
        total,
        card.accepted or (),
        card.columns,
        card.id_column,
        ledger is not None,
        ledger.disjoint if ledger else None,
        ledger.identifier if ledger else None,
        unique,
    )
    varied = [UNCHECKED] if getattr(card.mechanism, "variation", None) is not None else []
    return [*(one.said for one in _weaknesses(card)), *of_release(facts, own), *varied]


def _weaknesses(card: Card) -> list[Weakness]:
    before, after = card.mechanism.weaknesses(card)
    return [*before, *of_guarantee(card.budget.total.guarantee, card.artefacts), *after]


def _spendings(card: Card) -> list[Spending[Guarantee]]:
    return [Spending(stage.stage, stage.parameters.guarantee) for stage in card.budget.stages]


def _subject(line: str) -> str:
    """Return a line up to its first number, bracket or colon: what is not protected."""
    return re.split(r"[\d(:;,]", line, maxsplit=1)[0].strip()


_EARLIER = {"which documents have changed": "what other releases of the corpus say"}
"""The subjects of lines of earlier versions, with those of the lines that took their place."""


def _of_number(facts: Facts) -> list[str]:
    """Return what a release reveals by its presence, where delta must not pass 1 / documents."""
    total = facts.total
    if not isinstance(total, DocumentPrivacy) or not total.delta or "large-delta" in facts.accept:
        return []
    most = math.floor(1 / total.delta)
    return [f"{statements.WHETHER}: a corpus of more than {most:,} documents makes none"]


def _of_ids(counted: bool) -> str:
    """Return under what the release's id is unique."""
    if not counted:
        return "no ledger counts them, and none checks that an id is used once"
    return "an id is unique within its ledger, which counts the releases that name it"


def _of_partitions(disjoint: Disjoint | None, identifier: str | None) -> list[str]:
    """Return what the ledger takes for granted of the release's partition."""
    again = "a document that comes back in another partition"
    alone = "the ledger counts partitions as if they had no document in common"
    match disjoint:
        case None:
            return []
        case "compared":
            return [
                f"{again} under another id, or under the same one written otherwise (7 and 007 are "
                f"two): {alone}, and compares the ids of the column {identifier!r}"
            ]
        case "declared":
            return [
                f"{again}: {alone}; the publisher declared that none does, and nothing checked it"
            ]
        case "unknown":
            return [f"{again}: nothing tells which do, and the ledger adds the partitions up"]


def _of_documents(facts: Facts) -> list[str]:
    """Return what a release reveals where the unit lies within one document."""
    unique = "checked by the id column" if facts.unique else "not checked: no id column is named"
    names = statements.named(list(facts.columns), facts.id_column)
    copied = [
        f"the columns {names}: copied as they are, and joinable with other data",
        "whether there is a release: a corpus in which such a column repeats the text"
        f"{unlike(facts.accept)} makes none",
    ]
    return [
        *(copied if facts.columns else []),
        "that a document is in the corpus, the number of documents, and the number of unreadable "
        "records",
        "what several documents of one person say together, or one document that the corpus holds "
        f"twice ({unique}): the unit lies within one document",
        "how the input was divided into files and row groups, by their numbers of documents",
    ]


def unlike(accept: Sequence[Reason]) -> str:
    """Return the looks that a released kept column does not have, for the card."""
    refused = [what for what, reason in NEEDED.items() if reason not in accept]
    return f", or looks like {' or '.join(refused)}," if refused else ""
