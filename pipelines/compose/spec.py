"""The arguments of a transform that others compose, checked as the keys of a spec are."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike, fspath
from typing import Annotated, Any, TypeVar

import pydantic
from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from quietcorpus.mechanisms.encoding import Value, encode
from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.transforms.errors import InputError, shown

from .. import registry
from ..environment.keys import (
    FILE_VARIABLE,
    VARIABLE,
    WorkerKey,
    configured_master_key,
)
from ..jobs.kind import Kind
from ..schema.errors import one_line, plain
from ..schema.mechanism import MechanismSpec, block_of
from ..schema.spec import check_kept
from ..schema.values import NAME, Accepted, Column, Strict, of_key

_ADDRESSING = 1  # the version of the rule by which rows address their noise; a change raises it
Block = TypeVar("Block", bound=Strict)


class RowsSpec(Strict):
    """The release that rows become, and their fields."""

    release: Annotated[str, Field(pattern=NAME)]
    text: Column
    id: Column
    keep: tuple[Column, ...]
    accept: Accepted = ()

    @pydantic.field_validator("keep", mode="before")
    @classmethod
    def _from_list(cls, value: object) -> object:
        return tuple(value) if isinstance(value, list) else value

    @model_validator(mode="after")
    def _fields(self) -> RowsSpec:
        if self.text == self.id:
            raise of_key("id", f"{shown(self.id)} is the text; name a field with a unique id")
        check_kept(self.text, self.id, self.keep)
        return self

    @property
    def corpus(self) -> bytes:
        """Return the digest that stands for the corpus in the release's key.

        No corpus of files has it. Rows have no place and no state: that they are one corpus, and
        one state of it, is what their release id says.
        """
        fields: dict[str, Value] = {"version": _ADDRESSING, "text": self.text, "id": self.id}
        return hashlib.sha256(encode({"rows": fields})).digest()

    def worker_key(self) -> WorkerKey:
        """Return the source of the key in workers; raises InputError without a master key here.

        A key that is drawn for one run would not do: workers cannot know which run a row belongs
        to.
        """
        master = configured_master_key()
        if master is None:
            raise InputError(
                f"{VARIABLE}: not set; set {VARIABLE} or {FILE_VARIABLE} where the pipeline is "
                "built and on every worker"
            )
        key = ReleaseKey.derive(master, self.release, self.corpus)
        return WorkerKey(self.release, self.corpus, key.fingerprint)


def checked(model: type[Block], **given: Any) -> Block:
    """Check arguments, those that are None left out; raises InputError with one line."""
    content = {
        name: fspath(value) if isinstance(value, PathLike) else plain(value)
        for name, value in given.items()
        if value is not None
    }
    try:
        return model.model_validate(content)
    except pydantic.ValidationError as error:
        raise InputError(one_line(error, model, content)) from None


def prepared(kind: str, **given: Any) -> tuple[MechanismSpec, Kind]:
    """Check a kind's arguments and find its artefacts; raises InputError as a release does."""
    block = checked(block_of(kind), kind=kind, **given)
    return block, registry.part(kind, "resolve")(block, 1)


@contextmanager
def labelled(label: str) -> Iterator[None]:
    """Begin the line of an InputError with a transform's name, in place of a spec's block."""
    try:
        yield
    except InputError as error:
        said = str(error).removeprefix("mechanism.")
        raise type(error)(f"{label}: {said}") from None


def check_fields(block: MechanismSpec, rows: RowsSpec) -> None:
    """Raise InputError for fields that a kind cannot use."""
    try:
        block.check_columns(rows.text, rows.keep)
    except PydanticCustomError as error:
        raise InputError(f"{(error.context or {})['key']}: {error.message()}") from None
