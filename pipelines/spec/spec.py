"""The spec of a release: one YAML file, checked in full before anything is read.

Unknown keys, duplicate keys and strings in place of numbers are errors. Privacy parameters are
read as the exact decimal that was written.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

import pydantic
from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from quietcorpus.pipelines.spec.mechanism import AnyMechanism
from quietcorpus.pipelines.spec.values import Column, Disjoint, Location, Strict
from quietcorpus.pipelines.storage.places import inside, root
from quietcorpus.transforms.reading.documents import Corpus


class InputSpec(Strict):
    """Where the documents are."""

    path: Location
    text: Column = "text"
    id: Column | None = None
    keep: tuple[Column, ...] = ()

    @pydantic.field_validator("keep", mode="before")
    @classmethod
    def _from_list(cls, value: object) -> object:
        return tuple(value) if isinstance(value, list) else value

    @model_validator(mode="after")
    def _columns(self) -> InputSpec:
        if self.text in self.keep:
            raise PydanticCustomError(
                "keep", f"keep: {self.text!r} is the text; it is never copied to a release"
            )
        reserved = {"terms", "counts", "bins", "text", "candidate", "embedding"}
        reserved |= {"id"} if self.id != "id" else set()
        for name in self.keep:
            if name in reserved or self.keep.count(name) > 1:
                raise PydanticCustomError(
                    "keep",
                    f"keep: {name!r} is a name that releases use themselves, or is given twice",
                )
        return self


class RejectsSpec(Strict):
    """Where unreadable records are noted, and how many of them the job tolerates."""

    path: Location
    max_share: Annotated[float, Field(ge=0, le=1)] = 0.01


class LedgerSpec(Strict):
    """Where it is counted what the corpus's releases cost together.

    Attributes:
        path: of the ledger.
        partition: the part of the corpus that these documents are, such as an interval's date.
        disjoint: the publisher's declaration that no other partition has any of them, which is
            believed; for a corpus without an id column, by which that would be checked.
    """

    path: Location
    partition: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")] | None = None
    disjoint: Literal["declared"] | None = None

    @model_validator(mode="after")
    def _of_a_partition(self) -> LedgerSpec:
        if self.disjoint is not None and self.partition is None:
            raise PydanticCustomError(
                "disjoint", "disjoint: is said of a partition, and none is named; name one"
            )
        return self


def _path_alone(value: object) -> object:
    return {"path": value} if isinstance(value, str) else value


class Spec(Strict):
    """A release."""

    release: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")]
    input: InputSpec
    output: Location
    mechanism: AnyMechanism
    rejects: RejectsSpec | None = None
    checkpoints: Location | None = None
    ledger: Annotated[LedgerSpec, BeforeValidator(_path_alone)] | None = None

    @property
    def corpus(self) -> Corpus:
        """The corpus in the transforms' terms."""
        given = self.input
        also = tuple(self.mechanism.columns)
        return Corpus(given.path, given.text, given.id, given.keep, also)

    @property
    def disjoint(self) -> Disjoint | None:
        """How it is known that no other partition has any document of this one; None without."""
        if self.ledger is None or self.ledger.partition is None:
            return None
        return "compared" if self.input.id is not None else self.ledger.disjoint or "unknown"

    @model_validator(mode="after")
    def _of_the_kind(self) -> Spec:
        self.mechanism.check_columns(self.input.text, self.input.keep)
        if self.checkpoints is not None and not self.mechanism.resumable:
            raise PydanticCustomError(
                "checkpoints", "checkpoints: is for word embeddings with `method: sgd` alone"
            )
        return self

    @model_validator(mode="after")
    def _places(self) -> Spec:
        source = self.input.path
        for key, place in (
            ("output", self.output),
            ("rejects", self.rejects and self.rejects.path),
            ("checkpoints", self.checkpoints),
            ("ledger", self.ledger and self.ledger.path),
        ):
            if place and re.search(r"[*?\[\]]", place):
                raise PydanticCustomError(key, f"{key}: {place} is a glob; name one folder")
        if inside(self.output, root(source)) or inside(source, self.output):
            raise PydanticCustomError(
                "output", f"output: {self.output} overlaps with the input {source}; keep them apart"
            )
        if self.rejects:
            self._check_apart("rejects.path", self.rejects.path)
        if self.checkpoints:
            self._check_apart("checkpoints", self.checkpoints)
        if self.ledger:
            self._check_apart("ledger", self.ledger.path)
            if self.ledger.disjoint is not None and self.input.id is not None:
                raise PydanticCustomError(
                    "disjoint",
                    f"ledger.disjoint: is for a corpus without an id column, and input.id "
                    f"{self.input.id!r} lets partitions be compared; drop one of the two",
                )
        if "://" in self.output and self.output.split("://")[1].count("/") == 0:
            raise PydanticCustomError(
                "output", f"output: {self.output} is a whole bucket; name a path inside it"
            )
        return self

    def _check_apart(self, key: str, path: str) -> None:
        for place, name in ((self.output, "output"), (root(self.input.path), "input")):
            if inside(path, place) or inside(f"{path}/{self.release}", place):
                raise PydanticCustomError(
                    "apart", f"{key}: {path} lies in the {name}; name a restricted place"
                )
