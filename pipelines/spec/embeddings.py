"""The mechanism block of `kind: word-embeddings`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from fractions import Fraction
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from quietcorpus.mechanisms.guarantees import ceiling
from quietcorpus.pipelines.spec.mechanism import MechanismSpec
from quietcorpus.pipelines.spec.values import Column, Count, Delta, Epsilon, Strict
from quietcorpus.pipelines.spec.vocabulary import UserVocabularySpec

MOST_TOKENS = 10_000  # of a user: training holds all pairs of their words in memory
MOST_DIMENSIONS = 1_024
MOST_STEPS = 1_000_000
MOST_USERS = 10**12
MOST_GROUPS = 100  # whose rates or norms are solved, a second or so each
_SHARE = 10
"""Of the users, one in so many is expected in a step unless the spec says otherwise."""


class EmbeddingMethod(StrEnum):
    """How vectors are learnt: by steps of training, or from counts that are released once."""

    SGD = "sgd"
    COOCCURRENCE = "cooccurrence"


def _by_group(value: object) -> object:
    if not isinstance(value, dict):
        raise PydanticCustomError("groups", "is not a mapping; give an epsilon for each GROUP")
    if not 0 < len(value) <= MOST_GROUPS:
        raise PydanticCustomError(
            "groups",
            "is not allowed; give at least one group"
            if not value
            else f"has more than {MOST_GROUPS} groups; give fewer",
        )
    return value


class GroupBudgets(Strict):
    """What the users of each group may spend: of groups by name, or by the numbers of a column."""

    column: Column
    epsilon: Annotated[dict[str, Epsilon], BeforeValidator(_by_group)] | None = None
    levels: Annotated[list[Epsilon], Field(min_length=1, max_length=MOST_GROUPS)] | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> GroupBudgets:
        if (self.epsilon is None) == (self.levels is None):
            raise PydanticCustomError(
                "one",
                "give exactly one of `epsilon: {GROUP: NUMBER}`, for a column of names, and "
                "`levels: [NUMBER, ...]`, for a column of numbers",
            )
        if self.levels and len({ceiling(level) for level in self.levels}) < len(self.levels):
            raise PydanticCustomError(
                "twice", "levels: two of them are the same in six digits; drop one"
            )
        return self

    @property
    def of_groups(self) -> dict[str, Fraction]:
        """The budget of each group; that of a level is called like its number."""
        return self.epsilon or {ceiling(level): level for level in self.levels or ()}


class TrainingSpec(Strict):
    """How `method: sgd` trains."""

    steps: Annotated[Count, Field(le=MOST_STEPS)] = 100
    lot: Count | None = None
    negatives: Annotated[Count, Field(le=100)] = 1
    clip: Annotated[float, Field(ge=1e-6, lt=1e6)] = 0.1
    learning_rate: Annotated[float, Field(gt=0, le=1000)] = 0.03
    stop_after: Count | None = None
    participation: Literal["rates", "steps"] = "rates"

    @model_validator(mode="after")
    def _ends(self) -> TrainingSpec:
        if self.stop_after is not None and self.stop_after > self.steps:
            raise PydanticCustomError(
                "stop_after",
                f"stop_after: {self.stop_after} is more than the {self.steps} steps; lower it, or "
                "drop it",
            )
        return self


class WordEmbeddingsSpec(MechanismSpec):
    """`kind: word-embeddings`."""

    kind: Literal["word-embeddings"]
    method: Annotated[EmbeddingMethod, Field(strict=False)]
    user: Column
    users: Annotated[Count, Field(le=MOST_USERS)]
    epsilon: Epsilon | None = None
    budgets: GroupBudgets | None = None
    delta: Delta
    vocabulary: UserVocabularySpec
    tokens: Annotated[Count, Field(le=MOST_TOKENS)] = 1_000
    dimensions: Annotated[Count, Field(le=MOST_DIMENSIONS)] = 100
    window: Annotated[Count, Field(le=20)] = 5
    few_users: Literal["accept"] | None = None
    training: TrainingSpec | None = None
    tokenizer: Literal["unicode-words-v1"] = "unicode-words-v1"

    @model_validator(mode="after")
    def _one_budget(self) -> WordEmbeddingsSpec:
        if (self.epsilon is None) == (self.budgets is None):
            raise PydanticCustomError(
                "one",
                "give exactly one of `epsilon`, which every user has, and `budgets: {column, "
                "epsilon: {GROUP: NUMBER}}`",
            )
        return self

    @model_validator(mode="after")
    def _of_the_method(self) -> WordEmbeddingsSpec:
        if self.training is not None and self.method is not EmbeddingMethod.SGD:
            raise PydanticCustomError("training", "training: is for `method: sgd` alone")
        lot = self.training.lot if self.training else None
        if lot is not None and lot > self.users:
            raise PydanticCustomError(
                "lot",
                f"training.lot: {lot} is more than the {self.users} users; lower it, or drop it",
            )
        return self

    @model_validator(mode="after")
    def _spelt_out(self) -> WordEmbeddingsSpec:
        """What is left out of `training` is the same release as what is spelt out there."""
        if self.method is not EmbeddingMethod.SGD:
            return self
        given = self.training or TrainingSpec()
        lot = given.lot or max(1, self.users // _SHARE)
        return self.model_copy(update={"training": given.model_copy(update={"lot": lot})})

    @model_validator(mode="after")
    def _enough_for_the_vocabulary(self) -> WordEmbeddingsSpec:
        private = self.vocabulary.private
        if private is None:
            return self
        given = self.budgets.of_groups if self.budgets else {"": self.epsilon or private.epsilon}
        for name, epsilon in given.items():
            if epsilon <= private.epsilon:
                key = f"{self.key}.{name}" if self.budgets and self.budgets.epsilon else self.key
                raise PydanticCustomError(
                    "vocabulary",
                    f"{key}: {float(epsilon):g} is not more than the {float(private.epsilon):g} "
                    "that the private vocabulary costs; raise it, or lower "
                    "vocabulary.private.epsilon",
                )
        if self.delta <= private.delta:
            raise PydanticCustomError(
                "vocabulary",
                f"delta: {float(self.delta):g} is not more than the {float(private.delta):g} that "
                "the private vocabulary costs; raise it, or lower vocabulary.private.delta",
            )
        return self

    @property
    def key(self) -> str:
        """The key of the budgets in this block."""
        if self.budgets is None:
            return "epsilon"
        return "budgets.epsilon" if self.budgets.epsilon else "budgets.levels"

    @property
    def columns(self) -> list[tuple[str, str]]:
        """The columns that are read besides the text, each with its key."""
        return [("mechanism.user", self.user)] + (
            [("mechanism.budgets.column", self.budgets.column)] if self.budgets else []
        )

    @property
    def resumable(self) -> bool:
        """Whether vectors are trained step by step."""
        return self.method is EmbeddingMethod.SGD

    def check_columns(self, text: str, keep: Sequence[str]) -> None:
        """Refuse kept columns, and users or groups that the text would name."""
        if keep:
            raise PydanticCustomError(
                "keep", "input.keep: word embeddings have no rows of documents; drop it"
            )
        for key, column in self.columns:
            if column == text:
                named = "users" if key == "mechanism.user" else "their groups"
                raise PydanticCustomError(
                    "text", f"{key}: {column!r} is the text; name the column of {named}"
                )

    def sources(self) -> Iterator[tuple[str, str]]:
        """The public vocabulary, if there is one."""
        yield from self.vocabulary.sources()
