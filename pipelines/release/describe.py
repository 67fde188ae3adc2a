"""The description of a finished release: its resolved spec, and its guarantee in full."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from quietcorpus.mechanisms.accounting.guarantees import DocumentPrivacy, Guarantee
from quietcorpus.mechanisms.encoding import Value
from quietcorpus.transforms.release import released_names
from quietcorpus.transforms.shards import Tally, Written

from ..card import limits, statements
from ..card import model as card
from ..card.block import resolved, stated
from ..card.mechanism import Mechanism, class_of
from ..card.model import Card
from ..environment.version import code_digest, software
from ..jobs.kind import Account, Kind
from ..schema.mechanism import MechanismSpec
from ..schema.spec import Spec


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
    found: Mapping[str, Value] = MappingProxyType({}),
) -> Card:
    """Build the card of a release that wrote these files.

    `created` is the time when it was begun (UTC, ISO 8601). `weak` says in which ways the
    guarantee is weak, which the card lists first; `found` is what only a run finds.
    """
    account = kind.account(files)
    told = counts_are_told(kind, account.total)
    copied = kept(spec)
    facts = limits.Facts(
        total=account.total,
        accept=spec.accept,
        columns=list(copied),
        id_column=copied.get("id"),
        counted=spec.ledger is not None,
        disjoint=spec.disjoint,
        identifier=spec.input.id,
        unique=spec.input.id is not None,
    )
    lines = [*weak, *limits.of_release(facts, account.not_protected)]
    made = mechanism(spec.mechanism, replace(account, resolved={**account.resolved, **found}))
    return Card(
        release=spec.release,
        created=created,
        mechanism=made,
        guarantee=statements.guarantee(
            account.total, lines, kind.artefacts, counted=told, noise=made.concentrated
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
        columns=list(copied),
        id_column=copied.get("id"),
        files=[card.File(path=f.path, sha256=f.sha256, rows=f.rows) for f in files],
        readme_sha256="0" * 64,  # until the README is rendered, from the rest of this card
        page_sha256=None,  # likewise
        code_sha256=code_digest(),
        software=software(),
    )


def mechanism(block: MechanismSpec, account: Account) -> Mechanism:
    """Return the mechanism on the card: the spec's block as it was run, and the run's results."""
    found = {name: resolved(value) for name, value in account.resolved.items()}
    return class_of(block.kind).model_validate(stated(block) | found)


def kept(spec: Spec) -> dict[str, str]:
    """Return the input's columns that are copied, by their names in the data files."""
    return released_names(spec.corpus) if spec.mechanism.copies_columns else {}
