"""The release card: what a release is, what it promises and what it does not.

`release.json` is this model; its JSON Schema is `docs/release.schema.json`. Privacy parameters
are given twice: as a float that never understates them, and as the exact rational.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from mechanisms.guarantees import LimitedPrecision, Spending, ceiling, round_up


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Parameters(_Part):
    """The numbers of a guarantee."""

    precision: int = Field(gt=0, description="N: how far two bags may be apart, in L1")
    epsilon: float = Field(ge=0, description="epsilon, rounded up")
    epsilon_exact: str = Field(description="epsilon as a rational, p/q")
    delta: float = Field(ge=0, lt=1, description="delta, rounded up")
    delta_exact: str = Field(description="delta as a rational, p/q")

    @classmethod
    def of(cls, guarantee: LimitedPrecision) -> Parameters:
        """The numbers of `guarantee`."""
        return cls(
            precision=guarantee.precision,
            epsilon=round_up(guarantee.epsilon),
            epsilon_exact=str(guarantee.epsilon),
            delta=round_up(guarantee.delta),
            delta_exact=str(guarantee.delta),
        )


class GuaranteePart(_Part):
    """What is promised."""

    definition: str
    adjacency: str
    unit: str
    parameters: Parameters
    statement: str
    not_protected: list[str]


class Stage(_Part):
    """A stage that spends budget."""

    stage: str
    parameters: Parameters


class Budget(_Part):
    """What was spent, stage by stage, and in all."""

    stages: list[Stage]
    total: Parameters


class PapersFigure(_Part):
    """What the paper's own accounting would say; not a guarantee."""

    epsilon: float
    explanation: str


class Artefact(_Part):
    """A public artefact that went in."""

    name: str
    uri: str
    digest: str
    provenance: Literal["public"]


class Counts(_Part):
    """Numbers of records; nothing about their content."""

    documents: int = Field(ge=0)
    rejected: int = Field(ge=0)


class File(_Part):
    """A file of the release."""

    path: str = Field(pattern=r"^[A-Za-z0-9._/-]+$")
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    rows: int = Field(ge=0)


class Card(_Part):
    """The card of one release, as `release.json` holds it."""

    schema_version: Literal[1] = 1
    release: str
    created: str = Field(description="UTC, ISO 8601")
    mechanism: dict[str, Any]
    guarantee: GuaranteePart
    budget: Budget
    papers_figure: PapersFigure | None = None
    artefacts: list[Artefact]
    counts: Counts
    columns: list[str] = Field(description="allow-listed columns, copied as they are")
    files: list[File]
    readme_sha256: str = Field(pattern=r"^[0-9a-f]{64}$", description="of README.md")
    software: dict[str, str]

    def to_json(self) -> str:
        """The text of `release.json`."""
        return json.dumps(self.model_dump(mode="json", exclude_none=True), indent=2) + "\n"


def schema() -> str:
    """The JSON Schema of `release.json`."""
    content = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return json.dumps(content | Card.model_json_schema(), indent=2) + "\n"


def budget(spendings: Sequence[Spending], total: LimitedPrecision) -> Budget:
    """The budget part of a card."""
    return Budget(
        stages=[Stage(stage=s.stage, parameters=Parameters.of(s.guarantee)) for s in spendings],
        total=Parameters.of(total),
    )


def guarantee(total: LimitedPrecision, not_protected: Sequence[str]) -> GuaranteePart:
    """The guarantee part of a card."""
    return GuaranteePart(
        definition=total.definition,
        adjacency=total.adjacency,
        unit=total.unit,
        parameters=Parameters.of(total),
        statement=statement(total),
        not_protected=list(not_protected),
    )


def statement(total: LimitedPrecision) -> str:
    """The guarantee in one sentence."""
    delta = f", up to a chance of {ceiling(total.delta)}" if total.delta else ""
    return (
        f"Two versions of a document ({_changes(total.precision)}) make any outcome of this "
        f"release equally likely within a factor of exp({ceiling(total.epsilon)}){delta}, "
        "whatever a reader knows already but the key."
    )


def _changes(precision: int) -> str:
    replaced = f" or {precision // 2} replaced" if precision > 1 else ""
    words = "word" if precision == 1 else "words"
    return f"at most {precision} {words} added or removed{replaced}"


def costs(parameters: Parameters) -> str:
    """Epsilon, and delta if there is one, in words; rounded up."""
    delta = Fraction(parameters.delta_exact)
    return f"epsilon {ceiling(Fraction(parameters.epsilon_exact))}" + (
        f", delta {ceiling(delta)}" if delta else ""
    )
