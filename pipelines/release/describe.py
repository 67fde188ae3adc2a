"""The description of a finished release: its resolved spec, and its guarantee in full."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from pydantic import BaseModel

from quietcorpus.mechanisms.guarantees import DocumentPrivacy, Guarantee, UserPrivacy, round_up
from quietcorpus.pipelines.card import model as card
from quietcorpus.pipelines.card import statements
from quietcorpus.pipelines.card.mechanism import Mechanism, class_of
from quietcorpus.pipelines.card.model import Card
from quietcorpus.pipelines.card.weakness import accepted
from quietcorpus.pipelines.environment.version import software
from quietcorpus.pipelines.kinds.kept_columns import unlike
from quietcorpus.pipelines.kinds.kind import Account, Kind
from quietcorpus.pipelines.spec.mechanism import MechanismSpec
from quietcorpus.pipelines.spec.spec import Spec
from quietcorpus.pipelines.spec.tokenizers import tokenizer_of
from quietcorpus.pipelines.storage import places
from quietcorpus.transforms.release import released_names
from quietcorpus.transforms.shards import Tally, Written


def counts_are_told(kind: Kind, total: Guarantee) -> bool:
    """Return whether a release tells the numbers of documents and of unreadable records.

    Where whole documents are protected, they would tell whether one of them is there.
    """
    return kind.counts_records and not isinstance(total, DocumentPrivacy)


def describe(
    spec: Spec,
    kind: Kind,
    files: Sequence[Written],
    tally: Tally,
    created: str,
    counted: card.LedgerEntry | None = None,
    weak: Sequence[str] = (),
) -> Card:
    """Build the card of a release that wrote these files.

    `created` is the time when it was begun (UTC, ISO 8601). `weak` says in which ways the
    guarantee is weak, which the card lists first.
    """
    account = kind.account(files)
    told = counts_are_told(kind, account.total)
    limits = [*weak, *accepted(spec.accept), *_not_protected(spec, account)]
    made = mechanism(spec.mechanism, account)
    return Card(
        release=spec.release,
        created=created,
        mechanism=made,
        guarantee=statements.guarantee(
            account.total, limits, kind.artefacts, counted=told, noise=made.concentrated
        ),
        budget=statements.budget(
            account.spendings, account.total, kind.artefacts, made.concentrated
        ),
        papers_figure=account.papers_figure,
        meaning=account.meaning,
        ledger=counted,
        accepted=list(spec.accept) or None,
        artefacts=list(kind.artefacts),
        counts=card.Counts(documents=tally.documents, rejected=tally.rejected) if told else None,
        columns=list(kept(spec)),
        id_column=kept(spec).get("id"),
        files=[card.File(path=f.path, sha256=f.sha256, rows=f.rows) for f in files],
        readme_sha256="0" * 64,  # until the README is rendered, from the rest of this card
        page_sha256=None,  # likewise
        software=software(),
    )


def mechanism(block: MechanismSpec, account: Account) -> Mechanism:
    """Return the mechanism on the card: the spec's block as it was run, and the run's results."""
    found = {name: _resolved(value) for name, value in account.resolved.items()}
    return class_of(block.kind).model_validate(stated(block) | found)


def stated(mechanism: MechanismSpec) -> dict[str, Any]:
    """Return the card's fields on the mechanism that follow from the spec's block alone."""
    said: dict[str, Any] = _resolved(mechanism)
    given = getattr(mechanism, "tokenizer", None)
    return said if given is None else said | {"tokenizer": tokenizer_of(given).description}


def kept(spec: Spec) -> dict[str, str]:
    """Return the input's columns that are copied, by their names in the data files."""
    return released_names(spec.corpus) if spec.mechanism.copies_columns else {}


def _resolved(value: Any) -> Any:
    """Convert a value of the spec's block to plain JSON values."""
    if isinstance(value, BaseModel):
        fields = {name: getattr(value, name) for name in type(value).model_fields}
        return {name: _resolved(inner) for name, inner in fields.items() if inner is not None}
    if isinstance(value, dict):
        return {name: _resolved(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_resolved(inner) for inner in value]
    if isinstance(value, Fraction):
        return round_up(value)
    if isinstance(value, str) and value.startswith("/"):
        return places.without_folders(value)
    return getattr(value, "value", value)


def _not_protected(spec: Spec, account: Account) -> list[str]:
    """Return what this release does not protect."""
    whole = isinstance(account.total, DocumentPrivacy | UserPrivacy)
    return [
        *_of_number(spec, account.total),
        *([] if whole else _of_documents(spec)),
        *_of_partitions(spec),
        *account.not_protected,
        "what other releases of the corpus say: the costs of all of them add up, and so do those "
        f"of a corpus and of its altered version, under whatever ids ({_of_ids(spec)})",
        "anything against an adversary who holds the master key, or breaks AES-256 or BLAKE2b",
    ]


def _of_number(spec: Spec, total: Guarantee) -> list[str]:
    """Return what a release tells by being there, where delta must not pass 1 / documents."""
    if not isinstance(total, DocumentPrivacy) or not total.delta or "large-delta" in spec.accept:
        return []
    most = math.floor(1 / total.delta)
    return [f"{statements.WHETHER}: a corpus of more than {most:,} documents makes none"]


def _of_ids(spec: Spec) -> str:
    """Return under what the release's id is unique."""
    if spec.ledger is None:
        return "no ledger counts them, and none checks that an id is used once"
    return "an id is unique within its ledger, which counts the releases that name it"


def _of_partitions(spec: Spec) -> list[str]:
    """Return what the ledger takes for granted of the release's partition."""
    again = "a document that comes back in another partition"
    alone = "the ledger counts partitions as if they had no document in common"
    match spec.disjoint:
        case None:
            return []
        case "compared":
            return [
                f"{again} under another id, or under the same one written otherwise (7 and 007 are "
                f"two): {alone}, and compares the ids of the column {spec.input.id!r}"
            ]
        case "declared":
            return [
                f"{again}: {alone}; the publisher declared that none does, and nothing checked it"
            ]
        case "unknown":
            return [f"{again}: nothing tells which do, and the ledger adds the partitions up"]


def _of_documents(spec: Spec) -> list[str]:
    """Return what a release reveals where the unit lies within one document."""
    unique = "checked by the id column" if spec.input.id else "not checked: no id column is named"
    columns = kept(spec)
    names = statements.named(list(columns), columns.get("id"))
    copied = [
        f"the columns {names}: copied as they are, and joinable with other data",
        "whether there is a release: a corpus in which such a column repeats the text"
        f"{unlike(spec.accept)} makes none",
    ]
    return [
        *(copied if columns else []),
        "that a document is in the corpus, the number of documents, and the number of unreadable "
        "records",
        "what several documents of one person say together, or one document that the corpus holds "
        f"twice ({unique}): the unit lies within one document",
        "how the input was divided into files and row groups, by their numbers of documents",
    ]
