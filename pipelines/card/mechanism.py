"""The mechanism of a release on its card, and the spec's block there.

The mechanism of a release on its card: the spec's block as it was run, and the run's results.

Each kind has a class, which also describes the files of its releases. The registry finds it by
`kind`.

The spec's block in a card's mechanism: a release states it, and `verify` reads it back.

What a spec may not hold, no card states: a block that is read back passes the same checks as the
block of a spec, of the same classes.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Mapping, Sequence, Set
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple, TypeAlias

import pyarrow as pa
from pydantic import (
    BaseModel,
    BeforeValidator,
    GetJsonSchemaHandler,
    SerializeAsAny,
    ValidationError,
)
from pydantic_core import CoreSchema, PydanticCustomError

from quietcorpus.indexes.tokens.tokenizers import Tokenizer
from quietcorpus.mechanisms.accounting.filters import Concentrated
from quietcorpus.mechanisms.accounting.guarantees import Spending, round_up
from quietcorpus.transforms.errors import shown
from quietcorpus.transforms.reading.documents import BATCH_DOCUMENTS

from .. import registry
from ..schema.blocks import tokenizer_of
from ..schema.loading import one_line
from ..schema.mechanism import MechanismSpec, block_of
from ..storage import places
from .parameters import Parameters, Part

UNKNOWN_KIND = "unknown_kind"
"""The type of the error for a card whose kind is not registered."""


Product: TypeAlias = Literal["dataset", "statistics", "model"]


class Promise(NamedTuple):
    """The form of a guarantee: the class of its parameters, and the metric if it has one."""

    parameters: type[Parameters]
    metric: str | None = None


class FileFormat(NamedTuple):
    """A file of a release.

    Attributes:
        meaning: a line of the release's README.
        columns: the table's columns, except copied ones; None for a file that is not Parquet.
        types: their types; None if they are not compared.
        nullable: those that may have empty values.
        is_data: whether there is a row for each document, with `id` and the copied columns first.
        row_group_rows: the number of rows in each row group but the last, in a file that is not
            rows of documents; None if there is one row group.
    """

    meaning: str
    columns: tuple[str, ...] | None = None
    types: tuple[pa.DataType, ...] | None = None
    nullable: frozenset[str] = frozenset()
    is_data: bool = False
    row_group_rows: int | None = None


class Mechanism(Part):
    """The mechanism of a release, with its resolved parameters."""

    has_papers_figure: ClassVar[bool] = False
    """The choice to state the result of a paper's own accounting on the card."""
    private: ClassVar[frozenset[str]] = frozenset()
    """The names of the artefacts that may be private, with a guarantee that the card accounts."""

    if TYPE_CHECKING:
        kind: str  # each class declares the field itself, which fixes its place among the keys

    @property
    def promise(self) -> Promise | None:
        """Return the form of guarantee that this mechanism gives; None if it is unknown."""
        raise NotImplementedError

    @property
    def counts_records(self) -> bool:
        """Return whether the card states numbers of records."""
        return True

    @property
    def files(self) -> Mapping[str, FileFormat]:
        """Return the formats of the files that a release may have, by their paths.

        The first is the main table, which Hugging Face datasets load. `data` stands for all files
        in the folder of that name, which have a row for each document.
        """
        raise NotImplementedError

    @property
    def row_group_rows(self) -> int:
        """Return the number of rows of documents in each row group but a file's last.

        Raises ArithmeticError or ValueError for numbers that cannot be.
        """
        return BATCH_DOCUMENTS

    @property
    def notes(self) -> list[str]:
        """Return the README's notes on the mechanism besides its parameters."""
        return []

    def limits(
        self, spendings: Sequence[Spending[Any]], artefacts: Sequence[Any]
    ) -> list[str] | None:
        """Return the card's lines on what this kind does not protect; None if it does not tell.

        Raises ArithmeticError, TypeError or ValueError for numbers that cannot be.
        """
        return None

    def weaknesses(self, card: Any) -> tuple[Sequence[Any], Sequence[Any]]:
        """Return this kind's weaknesses that stand before those of the guarantee, and after them.

        `card` is the `model.Card` that this mechanism is on, which is made of this class. Raises
        what `limits` does.
        """
        return [], []

    def asked(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return the keys of the spec's block, as on the card, in the form that a spec has."""
        return given

    def results(self, block: Any) -> tuple[Set[str], Set[str]]:
        """Return the keys that a run of a spec's block adds or fills in, and those that it may.

        `block` is the `schema.mechanism.MechanismSpec` of this kind.
        """
        return set(), set()

    @property
    def used(self) -> list[tuple[str, str]]:
        """Return the names of the artefacts, in order, each with the place that the block has."""
        return []

    def check_files(self, output: str, card: Any) -> None:
        """Compare files with each other, beyond `misfit`; raises InputError."""

    def misfit(self, name: str, rows: pa.Table, tables: Mapping[str, pa.Table]) -> str | None:
        """Return the fault of rows of a table that do not fit this kind; None if there is none.

        `name` is that of `files`, and `tables` has those besides `data`.
        """
        return None

    def disagreement(self, rows: pa.Table, before: dict[Any, Any]) -> str | None:
        """Return the fault of rows of documents that do not fit other rows; None if there is none.

        It is called once for each row group of all files. `before` holds what the kind notes of
        them, and begins empty.
        """
        return None

    def written(self, output: str) -> Iterator[tuple[str, bytes]]:
        """Yield the paths of further files with the content that a release at `output` writes.

        The kind's `check` has accepted the release.
        """
        return iter(())

    @property
    def product(self) -> Product:
        """Return the sort of product that the release is."""
        return "dataset"

    @property
    def proofs(self) -> tuple[str, ...]:
        """Return the modules of `mechanisms/` that prove the guarantee, such as `words/brr`."""
        return ()

    @property
    def concentrated(self) -> Concentrated | None:
        """Return what Gaussian noise costs under a filter; None if the card does not tell it.

        Raises ArithmeticError or ValueError for numbers that cannot be.
        """
        return None

    def charged(self, stages: Sequence[Any]) -> Concentrated | None:
        """Return what a filter charges for the release, whose stages have these parameters.

        None if it has no Gaussian noise. Raises what `concentrated` does.
        """
        return self.concentrated

    @property
    def is_reconstructable(self) -> bool:
        """Return whether the rows may be drawn from a model of another release's."""
        return False

    @property
    def required(self) -> tuple[str, ...]:
        """Return the paths of the files that every release has, besides `data`."""
        return ()


def _by_kind(value: object) -> object:
    if isinstance(value, Mechanism):
        return value
    given = value if isinstance(value, dict) else {}
    kind = given.get("kind")
    if not registry.is_registered(kind):
        known = ", ".join(registry.names())
        raise PydanticCustomError(
            UNKNOWN_KIND,
            "{kind} is not a kind of release that is known here; they are {known}",
            {"kind": shown(kind), "known": known},
        )
    return class_of(str(kind), given).model_validate(value)


def class_of(kind: str, keys: Container[str] = ()) -> type[Mechanism]:
    """Return the class of a kind's mechanism, in the form that has these keys."""
    found: type[Mechanism] = registry.part(registry.form(kind, keys), "mechanism")
    return found


class _EveryKind:
    """The JSON Schema of a mechanism: one of the registered kinds'."""

    def __get_pydantic_json_schema__(
        self, _: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        classes = [handler(class_of(name).__pydantic_core_schema__) for name in registry.forms()]
        return {"oneOf": classes, "discriminator": {"propertyName": "kind"}}


AnyMechanism = Annotated[SerializeAsAny[Mechanism], BeforeValidator(_by_kind), _EveryKind()]


_SAME = 1e-15  # a decimal that is rounded up again may be one float above


def stated(block: MechanismSpec) -> dict[str, Any]:
    """Return the card's fields on the mechanism that follow from the spec's block alone."""
    said: dict[str, Any] = resolved(block)
    given = getattr(block, "tokenizer", None)
    return said if given is None else said | {"tokenizer": tokenizer_of(given).description}


def read_back(mechanism: Mechanism) -> MechanismSpec:
    """Return the spec's block that a card's mechanism states.

    Raises ValueError unless a release of that block states all that the mechanism does, under the
    same names and nothing besides.
    """
    content = mechanism.model_dump(mode="json", exclude_none=True)
    if "tokenizer" in content:
        content["tokenizer"] = _rule(content["tokenizer"])
    kind = block_of(mechanism.kind, type(mechanism).model_fields)
    given = mechanism.asked({key: content[key] for key in kind.model_fields if key in content})
    try:
        block = kind.model_validate(given)
    except ValidationError as error:
        raise ValueError(one_line(error, kind, given)) from None
    if not _alike(resolved(block), given):
        raise ValueError("a value is not one that a spec has")
    needed, perhaps = mechanism.results(block)
    found = content.keys() - given.keys()
    if wrong := (needed - content.keys()) | (found - needed - perhaps):
        raise ValueError(f"{min(wrong)} is missing, or does not belong to it")
    return block


def resolved(value: Any) -> Any:
    """Convert a value of the spec's block to plain JSON values."""
    if isinstance(value, BaseModel):
        fields = {name: getattr(value, name) for name in type(value).model_fields}
        return {name: resolved(inner) for name, inner in fields.items() if inner is not None}
    if isinstance(value, dict):
        return {name: resolved(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):  # a tuple holds labels, not places
        return [resolved(inner) for inner in value] if isinstance(value, list) else list(value)
    if isinstance(value, Fraction):
        return round_up(value)
    if isinstance(value, str) and value.startswith("/"):
        return places.without_folders(value)
    return getattr(value, "value", value)


def _rule(description: str) -> Any:
    """Return the rule of a description as a spec names it; raises ValueError for another text."""
    found = Tokenizer.described(description)
    if not found.takes_language:
        return found.name
    return {"name": found.name} | ({"language": found.language} if found.language else {})


def _alike(own: Any, given: Any) -> bool:
    """Tell whether two JSON values are the same, but for a decimal's last rounding."""
    if isinstance(own, float) and isinstance(given, float):
        return math.isclose(own, given, rel_tol=_SAME)
    if isinstance(own, Mapping) and isinstance(given, Mapping):
        return own.keys() == given.keys() and all(_alike(own[key], given[key]) for key in own)
    if isinstance(own, list) and isinstance(given, list):
        return len(own) == len(given) and all(map(_alike, own, given))
    return type(own) is type(given) and bool(own == given)
