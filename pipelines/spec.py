"""The spec of a release: one YAML file, checked in full before anything is read.

Unknown keys, duplicate keys and strings in place of numbers are errors. Privacy parameters are
read as the exact decimal that was written.
"""

from __future__ import annotations

import os
import posixpath
import re
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal

import pydantic
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from indexes.compression import Method
from mechanisms.bag_of_words import Accounting
from mechanisms.geometric import MINIMUM_RATE
from transforms.documents import Corpus
from transforms.errors import InputError

_LARGEST = 10**9  # nothing is private long before this


def _exact(value: object) -> Fraction:
    """The decimal as written: 0.1 is 1/10, not the nearest binary fraction."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise PydanticCustomError("number", "is not a number; give a positive number")
    if not 0 < value < _LARGEST:
        raise PydanticCustomError("positive", "is not allowed; give a positive, finite number")
    return Fraction(repr(value))


def _probability(value: Fraction) -> Fraction:
    if value >= 1:
        raise PydanticCustomError("probability", "is not allowed; give a number between 0 and 1")
    return value


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise PydanticCustomError("count", "is not allowed; give a positive whole number")
    return value


def absolute(value: str) -> str:
    """Local paths become absolute, so that positions do not depend on the working directory."""
    if not value.strip():
        raise PydanticCustomError("path", "is not allowed; give a path or a URI")
    return value.rstrip("/") if "://" in value else str(Path(value).expanduser().absolute())


Epsilon = Annotated[Fraction, BeforeValidator(_exact)]
Delta = Annotated[Fraction, BeforeValidator(_exact), AfterValidator(_probability)]
Count = Annotated[int, BeforeValidator(_count)]
Location = Annotated[str, AfterValidator(absolute)]
Column = Annotated[str, Field(min_length=1)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class InputSpec(_Strict):
    """Where the documents are."""

    path: Location
    text: Column = "text"
    id: Column | None = None
    keep: tuple[Column, ...] = ()

    @property
    def corpus(self) -> Corpus:
        """The corpus in the transforms' terms."""
        return Corpus(self.path, self.text, self.id, self.keep)

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
        reserved = {"terms", "counts"} | ({"id"} if self.id != "id" else set())
        for name in self.keep:
            if name in reserved or self.keep.count(name) > 1:
                raise PydanticCustomError(
                    "keep", f"keep: {name!r} is a column of every release, or is named twice"
                )
        return self


class RejectsSpec(_Strict):
    """Where unreadable records are noted, and how many of them the job tolerates."""

    path: Location
    max_share: Annotated[float, Field(ge=0, le=1)] = 0.01


class PrivateVocabulary(_Strict):
    """A vocabulary selected from the corpus."""

    epsilon: Epsilon
    delta: Delta


class VocabularySpec(_Strict):
    """Exactly one of a public list and a private selection."""

    public: Location | None = None
    private: PrivateVocabulary | None = None

    @model_validator(mode="after")
    def _one(self) -> VocabularySpec:
        if (self.public is None) == (self.private is None):
            raise PydanticCustomError(
                "one", "give exactly one of `public: PATH` and `private: {epsilon, delta}`"
            )
        return self


class PublicArtefact(_Strict):
    """A public artefact."""

    public: Location


class CompressionSpec(_Strict):
    """The compression map."""

    method: Annotated[Method, Field(strict=False)]
    size: Count | None = None
    embedding: PublicArtefact | None = None

    @model_validator(mode="after")
    def _complete(self) -> CompressionSpec:
        if (self.method is Method.NONE) != (self.size is None):
            raise PydanticCustomError(
                "size", "size: give the number of bins, unless `method` is none"
            )
        embedded = self.method in (Method.EMBEDDING_CLUSTER, Method.EMBEDDING_DISPERSE)
        if embedded != (self.embedding is not None):
            raise PydanticCustomError(
                "embedding", "embedding: give `{public: PATH}` for the embedding methods alone"
            )
        return self


class _LimitedPrecisionSpec(_Strict):
    precision: Count
    epsilon: Epsilon
    vocabulary: VocabularySpec
    tokenizer: Literal["unicode-words-v1"] = "unicode-words-v1"

    def _rates(self) -> dict[str, Fraction]:
        private = self.vocabulary.private
        return {"epsilon": self.epsilon} | (
            {"vocabulary.private.epsilon": private.epsilon} if private else {}
        )

    @model_validator(mode="after")
    def _enough_epsilon(self) -> _LimitedPrecisionSpec:
        for key, epsilon in self._rates().items():
            if epsilon / self.precision < MINIMUM_RATE:
                raise PydanticCustomError(
                    "rate",
                    f"{key}: {float(epsilon):g} over a precision of {self.precision} is less than "
                    f"{float(MINIMUM_RATE):g} a token: such noise drowns everything; raise epsilon",
                )
        return self


class HistogramSpec(_LimitedPrecisionSpec):
    """`kind: histogram`."""

    kind: Literal["histogram"]


class BagOfWordsSpec(_LimitedPrecisionSpec):
    """`kind: bag-of-words`."""

    kind: Literal["bag-of-words"]
    histogram_epsilon: Epsilon | None = None
    accounting: Annotated[Accounting, Field(strict=False)] = Accounting.TIGHT
    compression: CompressionSpec

    def _rates(self) -> dict[str, Fraction]:
        histogram = self.histogram_epsilon
        return super()._rates() | ({"histogram_epsilon": histogram} if histogram else {})

    @model_validator(mode="after")
    def _fixed_guarantee(self) -> BagOfWordsSpec:
        if self.accounting is Accounting.PER_ENTRY and self.vocabulary.private:
            raise PydanticCustomError(
                "accounting",
                "accounting: per-entry spends V * epsilon / K, and a private vocabulary's size V "
                "is not known before the run; give a public vocabulary, or tight accounting",
            )
        return self

    @model_validator(mode="after")
    def _histogram(self) -> BagOfWordsSpec:
        if self.compression.method is not Method.NONE and self.histogram_epsilon is None:
            raise PydanticCustomError(
                "histogram",
                "histogram_epsilon: missing; the terms of a bin are drawn by the private "
                "histogram, so give its epsilon (or compression: {method: none})",
            )
        return self


class Spec(_Strict):
    """A release."""

    release: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")]
    input: InputSpec
    output: Location
    mechanism: Annotated[HistogramSpec | BagOfWordsSpec, Field(discriminator="kind")]
    rejects: RejectsSpec | None = None

    @model_validator(mode="after")
    def _places(self) -> Spec:
        source = self.input.path
        if _inside(self.output, _root(source)) or _inside(source, self.output):
            raise PydanticCustomError(
                "output", f"output: {self.output} overlaps with the input {source}; keep them apart"
            )
        if self.rejects:
            self._check_rejects(self.rejects.path)
        if "://" in self.output and self.output.split("://")[1].count("/") == 0:
            raise PydanticCustomError(
                "output", f"output: {self.output} is a whole bucket; name a path inside it"
            )
        return self

    def _check_rejects(self, path: str) -> None:
        for place, name in ((self.output, "output"), (_root(self.input.path), "input")):
            if _inside(path, place) or _inside(f"{path}/{self.release}", place):
                raise PydanticCustomError(
                    "rejects", f"rejects.path: {path} lies in the {name}; name a restricted place"
                )


def _root(pattern: str) -> str:
    """The file itself, or the folder in which a glob looks for files."""
    literal = re.split(r"[*?\[]", pattern, maxsplit=1)[0]
    return pattern if literal == pattern else posixpath.dirname(literal)


def _inside(path: str, folder: str) -> bool:
    path, folder = (p if "://" in p else os.path.realpath(p) for p in (path, folder))
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def load_spec(path: str) -> Spec:
    """Read and check a spec; raises InputError with one line that names key, value and remedy."""
    try:
        with open(path, encoding="utf-8") as stream:
            content = YAML(typ="safe", pure=True).load(stream)
    except FileNotFoundError:
        raise InputError(f"{path}: no such spec file") from None
    except (OSError, UnicodeDecodeError):
        raise InputError(f"{path}: cannot be read as UTF-8 text") from None
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        problem = " ".join(str(error.problem).split())
        raise InputError(f"{path}: line {line} is not valid YAML: {problem}") from None
    except YAMLError:
        raise InputError(f"{path}: holds characters that YAML does not allow") from None
    try:
        return Spec.model_validate(content)
    except pydantic.ValidationError as error:
        raise InputError(f"{path}: {_one_line(error)}") from None


def _one_line(error: pydantic.ValidationError) -> str:
    """The first error as `key: value problem; remedy`."""
    first = error.errors(include_url=False)[0]
    location = [str(part) for part in first["loc"] if part not in ("bag-of-words", "histogram")]
    key = ".".join(location)
    value, kind, message = first["input"], first["type"], first["msg"]
    if kind == "extra_forbidden":
        return f"{key}: unknown key; allowed here: {', '.join(_allowed(first['loc'][:-1]))}"
    if kind == "missing":
        return f"{key}: missing; give it a value"
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        given = value.get("kind") if isinstance(value, dict) else value
        return f"{key}.kind: {given!r} is not a kind; give one of bag-of-words, histogram"
    if kind in ("model_type", "model_attributes_type"):
        keys = ", ".join(_allowed(first["loc"]))
        return f"{key or 'the spec'}: {value!r} is not a mapping; give the keys {keys}"
    if isinstance(value, dict | BaseModel):
        # A message that begins with a key of its own goes on where this one ends.
        joint = "." if message.split(" ")[0].endswith(":") else ": "
        return f"{key}{joint}{message}" if key else message
    return f"{key}: {value!r} {_lowered(message)}"


def _lowered(message: str) -> str:
    return message if message.startswith("is ") else f"is not allowed: {message}"


def _allowed(location: tuple[Any, ...]) -> list[str]:
    """The keys of the model at `location`."""
    model: Any = Spec
    for part in location:
        if part in ("bag-of-words", "histogram"):
            model = BagOfWordsSpec if part == "bag-of-words" else HistogramSpec
            continue
        annotation = model.model_fields[part].annotation
        options = [annotation, *getattr(annotation, "__args__", ())]
        model = next(
            (o for o in options if isinstance(o, type) and issubclass(o, BaseModel)), model
        )
    return list(model.model_fields)
