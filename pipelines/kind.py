"""What a kind of release is to the rest: checked before anything runs, built, and accounted for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import apache_beam as beam

from mechanisms.guarantees import Guarantee, Spending
from pipelines import card
from pipelines.job import Job
from transforms.shards import Tally, Written


@dataclass(frozen=True)
class Account:
    """What a kind says of its finished run.

    Attributes:
        spendings: what each stage cost.
        total: what they cost together.
        resolved: what the card says of the mechanism besides the spec's block.
        not_protected: what a reader may learn, beyond what every kind gives away.
        papers_figure: what the paper's own accounting would say, where it differs.
        meaning: what epsilon means for these words, for metric privacy.
    """

    spendings: Sequence[Spending[Any]]
    total: Guarantee
    resolved: Mapping[str, Any]
    not_protected: Sequence[str]
    papers_figure: card.PapersFigure | None = None
    meaning: card.Meaning | None = None


class Kind(Protocol):
    """One kind of release, prepared from a spec whose artefacts were found and checked.

    Attributes:
        passes: how often every document is read.
        computing: what its bytes depend on besides what all kinds run on.
        has_documents: whether every document becomes a row of the release.
    """

    @property
    def passes(self) -> int: ...

    @property
    def computing(self) -> str: ...

    @property
    def has_documents(self) -> bool: ...

    @property
    def artefacts(self) -> Sequence[card.Artefact]:
        """The artefacts that go in."""

    @property
    def cost(self) -> Guarantee:
        """What a run costs in all; raises InputError if that is not known before it."""

    @property
    def whose(self) -> str:
        """What the unit of protection depends on: an index, a splitter, a column; often nothing."""
        return ""

    def build(self, pipeline: beam.Pipeline, job: Job) -> None:
        """Add the job to a pipeline."""

    def check(self, tally: Tally) -> None:
        """Raise InputError if what was read cannot make a release of this kind."""

    def finish(self, job: Job, files: Sequence[Written]) -> Sequence[Written]:
        """What the launcher makes of the pipeline's files: those of the release."""
        return files

    def account(self, files: Sequence[Written]) -> Account:
        """What the run that wrote these files cost, and means."""
