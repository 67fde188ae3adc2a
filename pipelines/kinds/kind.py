"""What a kind of release is to the rest: checked before anything runs, built, and accounted for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import apache_beam as beam

from quietcorpus.mechanisms.encoding import Value
from quietcorpus.mechanisms.guarantees import Guarantee, Spending
from quietcorpus.pipelines.card import model as card
from quietcorpus.pipelines.card.weakness import Weakness, of_guarantee
from quietcorpus.pipelines.kinds.job import Job
from quietcorpus.pipelines.spec.spec import Spec
from quietcorpus.transforms.shards import Tally, Written


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
    def unit_scope(self) -> str:
        """What the unit of protection depends on: an index, a splitter, a column; often nothing."""
        return ""

    @property
    def weaknesses(self) -> Sequence[Weakness]:
        """What makes its guarantee mean little, as far as it is known before a run."""
        return of_guarantee(self.cost, self.artefacts)

    def build(self, pipeline: beam.Pipeline, job: Job) -> None:
        """Add the job to a pipeline."""

    def check(self, tally: Tally) -> None:
        """Raise InputError if what was read cannot make a release of this kind."""

    def finish(self, job: Job, files: Sequence[Written]) -> Sequence[Written]:
        """What the launcher makes of the pipeline's files: those of the release."""
        return files

    def shown(self, made: Sequence[Written], files: Sequence[Written]) -> Sequence[Weakness]:
        """What only the run shows, by what the pipeline made, and what is released of it."""
        return ()

    def account(self, files: Sequence[Written]) -> Account:
        """What the run that wrote these files cost, and means."""


def asked(spec: Spec, kind: Kind) -> dict[str, Value]:
    """What is asked for: the spec, and the artefacts that it names, as they are now."""
    artefacts = [artefact.model_dump() for artefact in kind.artefacts]
    return {"spec": spec.model_dump(), "artefacts": artefacts}
