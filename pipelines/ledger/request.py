"""The request for a budget that a release makes to its ledger."""

from __future__ import annotations

from dataclasses import dataclass

from .caps import Cost
from .disjoint import Partition


@dataclass(frozen=True)
class Request:
    """A release's request to its ledger.

    Attributes:
        release: the release's id.
        run: a keyed digest of the spec; a caller who has spec and key may resume the run.
        corpus: the place of the documents: a path, a glob or a URI.
        output: the place of the release.
        partition: the part of the corpus that its documents are; None for any documents.
        cost: the cost of the release.
    """

    release: str
    run: str
    corpus: str
    output: str
    partition: Partition | None
    cost: Cost
