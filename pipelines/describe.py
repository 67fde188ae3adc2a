"""What a finished release says of itself: the spec, resolved, and the guarantee in full."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from pydantic import BaseModel

from indexes.tokenizer import DESCRIPTION
from mechanisms.guarantees import UserPrivacy, round_up
from pipelines import card
from pipelines.card import Card
from pipelines.kind import Account, Kind
from pipelines.spec import Spec
from pipelines.version import software
from transforms.shards import Tally, Written


def describe(
    spec: Spec,
    kind: Kind,
    files: Sequence[Written],
    tally: Tally,
    created: str,
    counted: card.Counted | None = None,
) -> Card:
    """The card of a release that was begun at a time (UTC, ISO 8601) and wrote these files."""
    account = kind.account(files)
    resolved = {name: _resolved(value) for name, value in account.resolved.items()}
    return Card(
        release=spec.release,
        created=created,
        mechanism=stated(spec) | resolved,
        guarantee=card.guarantee(account.total, _not_protected(spec, account), kind.artefacts),
        budget=card.budget(account.spendings, account.total, kind.artefacts),
        papers_figure=account.papers_figure,
        meaning=account.meaning,
        ledger=counted,
        artefacts=list(kind.artefacts),
        counts=card.Counts(documents=tally.documents, rejected=tally.rejected),
        columns=list(spec.input.keep),
        files=[card.File(path=f.path, sha256=f.sha256, rows=f.rows) for f in files],
        readme_sha256="0" * 64,  # of a text that is rendered from the rest of this card
        software=software(),
    )


def stated(spec: Spec) -> dict[str, Any]:
    """What the card says of the mechanism that the spec alone tells."""
    said: dict[str, Any] = _resolved(spec.mechanism)
    return said | {"tokenizer": DESCRIPTION} if "tokenizer" in said else said


def _resolved(value: Any) -> Any:
    """The spec's block in plain JSON values."""
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
        return card.without_folders(value)
    return getattr(value, "value", value)


def _not_protected(spec: Spec, account: Account) -> list[str]:
    """What this release gives away."""
    within = [] if isinstance(account.total, UserPrivacy) else _of_documents(spec)
    return [
        *within,
        *_of_partitions(spec),
        *account.not_protected,
        "which documents have changed, if an altered corpus is released under the same id and "
        "master key: give every release an id of its own",
        "anything against an adversary who holds the master key, or breaks AES-256 or BLAKE2b",
    ]


def _of_partitions(spec: Spec) -> list[str]:
    """What the ledger takes for granted of a partition."""
    if spec.ledger is None or spec.ledger.partition is None:
        return []
    if spec.input.id:
        return [
            "a document that comes back in another partition under another id: the ledger counts "
            "partitions as if they had no document in common, and compares their ids"
        ]
    return [
        "a document that comes back in another partition: the ledger counts partitions as if they "
        "had no document in common, and cannot compare them without an id column"
    ]


def _of_documents(spec: Spec) -> list[str]:
    """What it gives away where the unit lies within one document."""
    unique = "checked by the id column" if spec.input.id else "not checked: no id column is named"
    names = ", ".join(spec.input.keep)
    kept = [f"the columns {names}: copied as they are, and joinable with other data"]
    return [
        *(kept if names else []),
        "that a document is in the corpus, the number of documents, and the number of unreadable "
        "records",
        "what several documents of one person say together, or one document that the corpus holds "
        f"twice ({unique}): the unit lies within one document",
        "how the input was divided into files and row groups, by their numbers of documents",
    ]
