"""The mechanism block of `kind: public-texts`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field, field_validator

from quietcorpus.indexes.folder import MANIFEST
from quietcorpus.pipelines.spec.mechanism import MechanismSpec
from quietcorpus.pipelines.spec.values import (
    Column,
    Count,
    Delta,
    Epsilon,
    Location,
    Strict,
    at_most,
    of_key,
)
from quietcorpus.transforms.artefacts.encoder import PACKAGED

MOST_NEAREST = 1_000
MOST_LABELS = 100


class StrataSpec(Strict):
    """The labels by which documents are counted apart."""

    column: Annotated[Column, Field(description="the column of a document's label")]
    labels: Annotated[
        tuple[Annotated[str, Field(min_length=1)], ...],
        Field(
            min_length=1,
            max_length=MOST_LABELS,
            description="a public list; documents of other labels do not vote",
        ),
    ]

    @field_validator("labels", mode="before")
    @classmethod
    def _from_list(cls, value: object) -> object:
        if isinstance(value, list) and len(value) > MOST_LABELS:
            raise of_key("", f"{len(value):,} are too many; give at most {MOST_LABELS}")
        return tuple(value) if isinstance(value, list) else value

    @field_validator("labels")
    @classmethod
    def _different(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(value)) < len(value):
            raise of_key("", "a label is given twice; give each once")
        return value


class PublicTextsSpec(MechanismSpec):
    """`kind: public-texts`."""

    kind: Annotated[
        Literal["public-texts"],
        Field(description="release the public texts that documents are most like, with weights"),
    ]
    pool: Annotated[
        Location, Field(description="public texts, as `quietcorpus index build-pool` makes them")
    ]
    epsilon: Annotated[Epsilon, Field(description="of one document, in all")]
    delta: Annotated[Delta, Field(description="well below 1 / documents")]
    encoder: Annotated[
        Annotated[str, Field(min_length=1)] | None,
        Field(
            description="the pool's; left out, the one that the pool carries, or "
            f"{PACKAGED}; else a sentence-transformers model, by name or path"
        ),
    ] = None
    nearest: Annotated[
        Count, at_most(MOST_NEAREST, "how many texts of the pool a document votes for")
    ] = 20
    strata: Annotated[
        StrataSpec | None, Field(description="count the documents of each label apart")
    ] = None
    copies_columns: ClassVar[bool] = False

    @property
    def columns(self) -> list[tuple[str, str]]:
        """Return the column of the labels, with its key."""
        return [("mechanism.strata.column", self.strata.column)] if self.strata else []

    def check_columns(self, text: str, keep: Sequence[str]) -> None:
        """Refuse kept columns, and a column of labels that is the text."""
        if keep:
            raise of_key("input.keep", "public texts have no rows of documents; drop it")
        for key, column in self.columns:
            if column == text:
                raise of_key(key, f"{column!r} is the text; name the column of labels")

    def sources(self) -> Iterator[tuple[str, str]]:
        """Yield the manifest of the pool."""
        yield "pool", f"{self.pool}/{MANIFEST}"
