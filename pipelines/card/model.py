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

from quietcorpus.mechanisms.guarantees import (
    Guarantee,
    LimitedPrecision,
    MetricPrivacy,
    SentencePrivacy,
    Spending,
    UserPrivacy,
    ceiling,
    round_up,
)
from quietcorpus.pipelines.spec.values import Disjoint
from quietcorpus.pipelines.storage.places import without_folders
from quietcorpus.transforms.artefacts import artefacts


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class LimitedPrecisionParameters(_Part):
    """The numbers of limited-precision local privacy."""

    precision: int = Field(gt=0, description="N: how far two bags may be apart, in L1")
    epsilon: float = Field(ge=0, description="epsilon, rounded up")
    epsilon_exact: str = Field(description="epsilon as a rational, p/q")
    delta: float = Field(ge=0, lt=1, description="delta, rounded up")
    delta_exact: str = Field(description="delta as a rational, p/q")

    @classmethod
    def of(cls, guarantee: LimitedPrecision) -> LimitedPrecisionParameters:
        """The numbers of `guarantee`."""
        return cls(
            precision=guarantee.precision,
            epsilon=round_up(guarantee.epsilon),
            epsilon_exact=str(guarantee.epsilon),
            delta=round_up(guarantee.delta),
            delta_exact=str(guarantee.delta),
        )

    @property
    def guarantee(self) -> LimitedPrecision:
        """The guarantee with these numbers."""
        return LimitedPrecision(
            self.precision, Fraction(self.epsilon_exact), Fraction(self.delta_exact)
        )


class MetricParameters(_Part):
    """The numbers of metric differential privacy."""

    metric: str = Field(description="how far apart two words are")
    epsilon: float = Field(gt=0, description="epsilon per unit of distance, rounded up")
    epsilon_exact: str = Field(description="epsilon as a rational, p/q")
    per: Literal["word", "document"] = Field(
        description="whether epsilon is every word's own, or shared equally by a document's words"
    )

    @classmethod
    def of(cls, guarantee: MetricPrivacy) -> MetricParameters:
        """The numbers of `guarantee`."""
        return cls(
            metric=guarantee.metric,
            epsilon=round_up(guarantee.epsilon),
            epsilon_exact=str(guarantee.epsilon),
            per=guarantee.per,
        )

    @property
    def guarantee(self) -> MetricPrivacy:
        """The guarantee with these numbers."""
        return MetricPrivacy(self.metric, Fraction(self.epsilon_exact), self.per)


class SentenceParameters(_Part):
    """The numbers of sentence-level privacy."""

    epsilon: float = Field(gt=0, description="epsilon of one sentence, rounded up")
    epsilon_exact: str = Field(description="epsilon as a rational, p/q")

    @classmethod
    def of(cls, guarantee: SentencePrivacy) -> SentenceParameters:
        """The numbers of `guarantee`."""
        return cls(epsilon=round_up(guarantee.epsilon), epsilon_exact=str(guarantee.epsilon))

    @property
    def guarantee(self) -> SentencePrivacy:
        """The guarantee with these numbers."""
        return SentencePrivacy(Fraction(self.epsilon_exact))


class GroupParameters(_Part):
    """The numbers of the users of one group."""

    name: str
    epsilon: float = Field(ge=0, description="epsilon of the group's users, rounded up")
    epsilon_exact: str = Field(description="epsilon as a rational, p/q")


class UserParameters(_Part):
    """The numbers of user-level privacy."""

    epsilon: float = Field(ge=0, description="epsilon of any user, rounded up")
    epsilon_exact: str = Field(description="epsilon as a rational, p/q")
    delta: float = Field(gt=0, lt=1, description="delta, rounded up")
    delta_exact: str = Field(description="delta as a rational, p/q")
    groups: list[GroupParameters] = Field(
        description="of the users of each group, where they have budgets of their own"
    )

    @classmethod
    def of(cls, guarantee: UserPrivacy) -> UserParameters:
        """The numbers of `guarantee`."""
        return cls(
            epsilon=round_up(guarantee.epsilon),
            epsilon_exact=str(guarantee.epsilon),
            delta=round_up(guarantee.delta),
            delta_exact=str(guarantee.delta),
            groups=[
                GroupParameters(name=name, epsilon=round_up(own), epsilon_exact=str(own))
                for name, own in guarantee.groups
            ],
        )

    @property
    def guarantee(self) -> UserPrivacy:
        """The guarantee with these numbers."""
        groups = tuple((group.name, Fraction(group.epsilon_exact)) for group in self.groups)
        return UserPrivacy(Fraction(self.epsilon_exact), Fraction(self.delta_exact), groups)


Parameters = LimitedPrecisionParameters | MetricParameters | SentenceParameters | UserParameters


def parameters(guarantee: Guarantee) -> Parameters:
    """The numbers of a guarantee."""
    match guarantee:
        case LimitedPrecision():
            return LimitedPrecisionParameters.of(guarantee)
        case MetricPrivacy():
            return MetricParameters.of(guarantee)
        case SentencePrivacy():
            return SentenceParameters.of(guarantee)
        case UserPrivacy():
            return UserParameters.of(guarantee)


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
    """What was spent, stage by stage, and in all.

    `inherited` comes on top: what the making of private artefacts cost, each under a definition
    of its own that does not add to this one's.
    """

    stages: list[Stage]
    total: Parameters
    inherited: list[dict[str, Any]] = []


class PapersFigure(_Part):
    """What the paper's own accounting would say; not a guarantee."""

    epsilon: float
    explanation: str


class Artefact(_Part):
    """An artefact that went in.

    A private one was made from private data: what it cost under its own `guarantee` comes on top
    of this release's cost, for the people whom that guarantee is about.
    """

    name: str
    uri: str
    digest: str
    provenance: Literal["public", "private"]
    guarantee: dict[str, Any] | None = None


class Spread(_Part):
    """A figure over a sample of words: its 5 %, 50 % and 95 % quantiles, and its extremes."""

    least: float
    low: float
    median: float
    high: float
    largest: float


class Typical(_Part):
    """What becomes of words at an epsilon: estimates over a sample of the index's words."""

    document_words: int | None = Field(None, description="for an epsilon that a document shares")
    epsilon: float = Field(description="of every word")
    unchanged: Spread = Field(description="N_w, the chance that a word is released as it is")
    set_size: Spread = Field(
        description="S_w, how many words hold 95 % of the chance; a lower estimate, which cannot "
        "exceed `set_size_limit`"
    )
    set_size_limit: int = Field(description="the most that so many draws can show")


class Meaning(_Part):
    """What epsilon means for the words of this index."""

    mean_distance: float = Field(description="of two different words of the vocabulary")
    mean_interval: list[float] | None = Field(
        None, description="95 % interval of the mean, where it is from a sample of pairs"
    )
    maximum_distance: float = Field(description="no two words are farther apart; rounded up")
    loss_at_mean: float = Field(
        description="epsilon times the mean distance: of one word, or where epsilon is a "
        "document's, of the whole document"
    )
    loss_at_maximum: float = Field(description="the same at the maximum distance; rounded up")
    loss_of_documents: dict[int, float] | None = Field(
        None, description="number of words: the loss if all are replaced at the mean distance"
    )
    typical: list[Typical]
    sample: str = Field(description="what the estimates are made from")


class Counts(_Part):
    """Numbers of records; nothing about their content."""

    documents: int = Field(ge=0)
    rejected: int = Field(ge=0)


class Counted(_Part):
    """Where the ledger of the corpus counts this release."""

    reservation: int = Field(ge=1, description="the number of the record that reserved its budget")
    record_sha256: str = Field(pattern=r"^[0-9a-f]{64}$", description="of that record")
    partition: str | None = Field(
        None, description="the part of the corpus that its documents are, where it is of one"
    )
    disjoint: Disjoint | None = Field(
        None,
        description="how it is known that other partitions have none of its documents: ids were "
        "compared, or the publisher declared it, which nothing checked; unknown: they add up",
    )
    identifier: str | None = Field(
        None, description="the column of the ids, where they were compared"
    )


class Reconstruction(_Part):
    """The release that this one was made from; nothing private went in, and nothing was spent."""

    card_sha256: str = Field(pattern=r"^[0-9a-f]{64}$", description="of its release.json")
    factors: int = Field(ge=1, description="of the low-rank model")
    starts: int = Field(ge=1, description="as many fits are averaged")
    passes: int = Field(ge=1, description="of each fit over all documents")


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
    meaning: Meaning | None = None
    ledger: Counted | None = None
    reconstruction: Reconstruction | None = None
    artefacts: list[Artefact]
    counts: Counts
    columns: list[str] = Field(
        description="allow-listed columns, copied as they are, by their names in the data files"
    )
    id_column: str | None = Field(
        None, description="the input's column that is copied as `id`; absent where ids are fresh"
    )
    files: list[File]
    readme_sha256: str = Field(pattern=r"^[0-9a-f]{64}$", description="of README.md")
    software: dict[str, str]

    @property
    def kept(self) -> list[str]:
        """The input's names of the columns that are copied."""
        return [self.id_column or name if name == "id" else name for name in self.columns]

    def to_json(self) -> str:
        """The text of `release.json`."""
        return json.dumps(self.model_dump(mode="json", exclude_none=True), indent=2) + "\n"


def schema() -> str:
    """The JSON Schema of `release.json`."""
    content = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return json.dumps(content | Card.model_json_schema(), indent=2) + "\n"


def budget(
    spendings: Sequence[Spending[Any]], total: Guarantee, artefacts: Sequence[Artefact]
) -> Budget:
    """The budget part of a card."""
    return Budget(
        stages=[Stage(stage=s.stage, parameters=parameters(s.guarantee)) for s in spendings],
        total=parameters(total),
        inherited=inherited(artefacts),
    )


def inherited(artefacts: Sequence[Artefact]) -> list[dict[str, Any]]:
    """The guarantees under which private artefacts were made."""
    return [{"artefact": a.name, **a.guarantee} for a in artefacts if a.guarantee is not None]


def guarantee(
    total: Guarantee, not_protected: Sequence[str], artefacts: Sequence[Artefact]
) -> GuaranteePart:
    """The guarantee part of a card."""
    return GuaranteePart(
        definition=total.definition,
        adjacency=total.adjacency,
        unit=total.unit,
        parameters=parameters(total),
        statement=statement(total, artefacts),
        not_protected=list(not_protected),
    )


def statement(total: Guarantee, artefacts: Sequence[Artefact] = ()) -> str:
    """The guarantee in one sentence, and one more for each private artefact."""
    match total:
        case LimitedPrecision():
            own = _precision_statement(total)
        case MetricPrivacy():
            own = _metric_statement(total)
        case SentencePrivacy():
            own = _sentence_statement(total)
        case UserPrivacy():
            own = _user_statement(total)
    extra = (
        f" This takes the {a.name} as given; it was made from private data, whose cost comes on "
        f"top: {a.guarantee.get('statement')}"
        for a in artefacts
        if a.guarantee is not None
    )
    return own + "".join(extra)


def _precision_statement(total: LimitedPrecision) -> str:
    delta = f", up to a chance of {ceiling(total.delta)}" if total.delta else ""
    return (
        f"Two versions of a document ({_changes(total.precision)}) make any outcome of this "
        f"release equally likely within a factor of exp({ceiling(total.epsilon)}){delta}, "
        "whatever a reader knows already but the key."
    )


def _metric_statement(total: MetricPrivacy) -> str:
    document = total.per == "document"
    shared = ", divided by the number of words of its released text" if document else ""
    return (
        "Replacing any words of a document by others of the vocabulary makes any outcome of this "
        f"release likelier by a factor of at most exp({ceiling(total.epsilon)} * d), where d is "
        f"the sum, over the replaced words{shared}, of the {total.metric}, whatever a reader "
        "knows already but the key."
    )


def _sentence_statement(total: SentencePrivacy) -> str:
    return (
        "Replacing one sentence of a document, as the splitter finds them, by another makes any "
        f"outcome of this release likelier by a factor of at most exp({ceiling(total.epsilon)}), "
        f"and replacing a of them by one of at most exp(a * {ceiling(total.epsilon)}), whatever a "
        "reader knows already but the key."
    )


def _user_statement(total: UserPrivacy) -> str:
    groups = "; ".join(f"exp({ceiling(epsilon)}) for {name}" for name, epsilon in total.groups)
    return (
        "Taking part with all of one's documents, or with none, makes any outcome of this release "
        f"equally likely within a factor of exp({ceiling(total.epsilon)}), up to a chance of "
        f"{ceiling(total.delta)}, whatever a reader knows already but the key, and apart from the "
        "numbers of documents and of unreadable records on its card"
        f"{f' (by groups of users: {groups})' if groups else ''}."
    )


def _changes(precision: int) -> str:
    replaced = f" or {precision // 2} replaced" if precision > 1 else ""
    words = "word" if precision == 1 else "words"
    return f"at most {precision} {words} added or removed{replaced}"


def costs(parameters: Parameters) -> str:
    """Epsilon, and delta if there is one, in words; rounded up."""
    epsilon = f"epsilon {ceiling(Fraction(parameters.epsilon_exact))}"
    match parameters:
        case MetricParameters():
            shared = " shared by a document's words" if parameters.per == "document" else ""
            return f"{epsilon} * d a word{shared}"
        case SentenceParameters():
            return f"{epsilon} a sentence"
        case LimitedPrecisionParameters() | UserParameters():
            delta = Fraction(parameters.delta_exact)
            return epsilon + (f", delta {ceiling(delta)}" if delta else "")


def total_cost(total: Parameters) -> str:
    """What a release costs in all, in words, with the precision that it is at."""
    at = f" at N = {total.precision}" if isinstance(total, LimitedPrecisionParameters) else ""
    return costs(total) + at


def public_artefact(name: str, found: artefacts.Artefact) -> Artefact:
    """A public file that went in."""
    uri = without_folders(found.uri)
    return Artefact(name=name, uri=uri, digest=found.digest, provenance="public")


def named(columns: Sequence[str], id_column: str | None, mark: str = "") -> str:
    """The names of copied columns, for people, each between two marks."""
    own = f" (the input's {mark}{id_column}{mark})" if id_column != "id" else ""
    return ", ".join(f"{mark}{name}{mark}{own if name == 'id' else ''}" for name in columns)


def row_places(rows: int) -> str:
    """What the order of rows gives away, where they are shuffled in groups of this many."""
    return (
        "roughly where in the input a row comes from: rows are shuffled within a row group of "
        f"at most {rows:,} rows, and the last one of a file may hold few"
    )


def stated(promise: GuaranteePart) -> dict[str, Any]:
    """What an index says of the guarantee under which its vectors were made."""
    return promise.model_dump(
        mode="json", include={"definition", "unit", "parameters", "statement"}
    )
