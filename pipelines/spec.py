"""The spec of a release: one YAML file, checked in full before anything is read.

Unknown keys, duplicate keys and strings in place of numbers are errors. Privacy parameters are
read as the exact decimal that was written.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Mapping
from typing import Annotated, Any

import pydantic
from pydantic import BaseModel, BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from pipelines.spec_embeddings import EmbeddingMethod, WordEmbeddingsSpec
from pipelines.spec_mechanisms import KINDS, TAGS, MechanismSpec
from pipelines.spec_values import Column, Location, Strict
from transforms.documents import Corpus
from transforms.errors import InputError


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
        partition: of documents that are in no other one, such as the date of an interval.
    """

    path: Location
    partition: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")] | None = None


def _path_alone(value: object) -> object:
    return {"path": value} if isinstance(value, str) else value


class Spec(Strict):
    """A release."""

    release: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")]
    input: InputSpec
    output: Location
    mechanism: Annotated[MechanismSpec, Field(discriminator="kind")]
    rejects: RejectsSpec | None = None
    checkpoints: Location | None = None
    ledger: Annotated[LedgerSpec, BeforeValidator(_path_alone)] | None = None

    @property
    def corpus(self) -> Corpus:
        """The corpus in the transforms' terms."""
        given = self.input
        also = getattr(self.mechanism, "columns", ())
        return Corpus(given.path, given.text, given.id, given.keep, tuple(also))

    @model_validator(mode="after")
    def _of_the_kind(self) -> Spec:
        if isinstance(self.mechanism, WordEmbeddingsSpec):
            self._check_users(self.mechanism)
        trained = getattr(self.mechanism, "method", None) is EmbeddingMethod.SGD
        if self.checkpoints is not None and not trained:
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
        if "://" in self.output and self.output.split("://")[1].count("/") == 0:
            raise PydanticCustomError(
                "output", f"output: {self.output} is a whole bucket; name a path inside it"
            )
        return self

    def _check_users(self, mechanism: WordEmbeddingsSpec) -> None:
        if self.input.keep:
            raise PydanticCustomError(
                "keep", "input.keep: word embeddings have no rows of documents; drop it"
            )
        for key, column in mechanism.columns:
            if column == self.input.text:
                whose = "users" if key == "mechanism.user" else "their groups"
                raise PydanticCustomError(
                    "text", f"{key}: {column!r} is the text; name the column of {whose}"
                )

    def _check_apart(self, key: str, path: str) -> None:
        for place, name in ((self.output, "output"), (root(self.input.path), "input")):
            if inside(path, place) or inside(f"{path}/{self.release}", place):
                raise PydanticCustomError(
                    "apart", f"{key}: {path} lies in the {name}; name a restricted place"
                )


def root(pattern: str) -> str:
    """The file itself, or the folder in which a glob looks for files."""
    literal = re.split(r"[*?\[]", pattern, maxsplit=1)[0]
    return pattern if literal == pattern else posixpath.dirname(literal)


def inside(path: str, folder: str) -> bool:
    """Whether a place is a folder or lies in it."""
    path, folder = (p if "://" in p else os.path.realpath(p) for p in (path, folder))
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def load_spec(path: str, changes: Mapping[str, str] | None = None) -> Spec:
    """Read and check a spec; raises InputError with one line that names key, value and remedy.

    `changes` are values, as YAML, that take the place of the file's by dotted key.
    """
    content = read_yaml(path, "spec file")
    for key, value in (changes or {}).items():
        _change(content, key, value)
    try:
        return Spec.model_validate(content)
    except pydantic.ValidationError as error:
        raise InputError(f"{path}: {_one_line(error)}") from None


def _change(content: Any, key: str, value: str) -> None:
    *parents, last = key.split(".")
    for parent in parents:
        content = content.get(parent) if isinstance(content, dict) else None
    if not isinstance(content, dict):
        raise InputError(f"{key}: the spec has no such block; name a key that it has")
    try:
        content[last] = YAML(typ="safe", pure=True).load(value)
    except YAMLError:
        raise InputError(f"{key}: {value!r} is not valid YAML") from None


def read_yaml(path: str, what: str) -> Any:
    """The content of a YAML file; raises InputError with a line that says what is wrong with it."""
    try:
        with open(path, encoding="utf-8") as stream:
            return YAML(typ="safe", pure=True).load(stream)
    except FileNotFoundError:
        raise InputError(f"{path}: no such {what}") from None
    except (OSError, UnicodeDecodeError):
        raise InputError(f"{path}: cannot be read as UTF-8 text") from None
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        problem = " ".join(str(error.problem).split())
        raise InputError(f"{path}: line {line} is not valid YAML: {problem}") from None
    except YAMLError:
        raise InputError(f"{path}: holds characters that YAML does not allow") from None


def _one_line(error: pydantic.ValidationError) -> str:
    """The first error as `key: value problem; remedy`."""
    errors = error.errors(include_url=False)
    # A key that is misspelt is unknown, and the right one missing: the first says more.
    first = next((e for e in errors if e["type"] == "extra_forbidden"), errors[0])
    key = ".".join(_keys(first["loc"]))
    value, kind, message = first["input"], first["type"], first["msg"]
    if kind == "extra_forbidden":
        return f"{key}: unknown key; allowed here: {', '.join(_allowed(first['loc'][:-1]))}"
    if kind == "missing":
        return f"{key}: missing; give it a value"
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        given = value.get("kind") if isinstance(value, dict) else value
        return f"{key}.kind: {given!r} is not a kind; give one of {', '.join(KINDS)}"
    if kind in ("model_type", "model_attributes_type"):
        keys = ", ".join(_allowed(first["loc"]))
        return f"{key or 'the spec'}: {value!r} is not a mapping; give the keys {keys}"
    if isinstance(value, dict | BaseModel) and not message.startswith("is "):
        # A message that begins with a key of its own goes on where this one ends.
        joint = "." if message.split(" ")[0].endswith(":") else ": "
        return f"{key}{joint}{message}" if key else message
    if kind == "string_type" and not isinstance(value, list | None):
        message = "is not a string; put it in quotes"
    return f"{key}: {value!r} {_lowered(message)}"


def _lowered(message: str) -> str:
    return message if message.startswith("is ") else f"is not allowed: {message}"


def _is_tag(number: int, part: object) -> bool:
    """Whether pydantic put a part into the place of an error, beside the spec's own keys."""
    return part in TAGS or (number == 1 and part in KINDS)  # a key may be called like a kind


def _keys(location: tuple[Any, ...]) -> list[str]:
    """The spec's own keys at the place of an error; what is wrong with a key is its owner's."""
    own = location[:-2] if location[-1:] == ("[key]",) else location
    return [str(part) for number, part in enumerate(own) if not _is_tag(number, part)]


def _allowed(location: tuple[Any, ...]) -> list[str]:
    """The keys of the model at `location`."""
    model: Any = Spec
    for number, part in enumerate(location):
        if _is_tag(number, part):
            model = {**KINDS, **TAGS}[part]
            continue
        annotation = model.model_fields[part].annotation
        options = [annotation, *getattr(annotation, "__args__", ())]
        model = next(
            (o for o in options if isinstance(o, type) and issubclass(o, BaseModel)), model
        )
    return list(model.model_fields)
