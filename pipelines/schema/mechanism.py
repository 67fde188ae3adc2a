"""The mechanism block of a spec, of whatever kind: the registry knows the class by `kind`."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import BeforeValidator, GetJsonSchemaHandler, SerializeAsAny
from pydantic_core import CoreSchema, PydanticCustomError

from .. import registry
from .values import (
    Strict,
    of_value,
)

UNKNOWN_KIND = "unknown_kind"
"""The type of the error of a block whose kind is not registered."""


class MechanismSpec(Strict):
    """The mechanism block of one kind of release.

    Attributes:
        copies_columns: whether the columns of `input.keep` and `input.id` reach the release.
        needs_users: whether documents without a user must be accepted by name.
        found: the keys whose values are found where they are left out, from the artefacts or by
            the kind (`Kind.chosen`), and which the card then states.
    """

    if TYPE_CHECKING:
        kind: str  # each block declares it, at a different place among the keys
    copies_columns: ClassVar[bool] = True
    needs_users: ClassVar[bool] = False
    found: ClassVar[frozenset[str]] = frozenset()

    @property
    def resumable(self) -> bool:
        """Return whether a run may go on from checkpoints."""
        return False

    @property
    def columns(self) -> list[tuple[str, str]]:
        """Return the columns that are read besides the text, each with its key."""
        return []

    def check_columns(self, text: str, keep: Sequence[str]) -> None:
        """Raise PydanticCustomError for columns of the input that this kind cannot use."""

    def sources(self) -> Iterator[tuple[str, str]]:
        """Yield the public files that are read, each with its key in this block."""
        return iter(())


def block_of(kind: str, keys: Container[str] = ()) -> type[MechanismSpec]:
    """Return the class of a kind's block, in the form that has these keys."""
    found: type[MechanismSpec] = registry.part(registry.form(kind, keys), "block")
    return found


def _by_kind(value: object) -> object:
    if isinstance(value, MechanismSpec):
        return value
    if not isinstance(value, dict):
        raise of_value("is not a mapping; give the keys kind, and its own")
    kind = value.get("kind")
    if not registry.is_registered(kind):
        raise PydanticCustomError(UNKNOWN_KIND, "is not a kind")
    return block_of(str(kind), value).model_validate(value)


class _EveryKind:
    """The JSON Schema of a block: one of the registered kinds'."""

    def __get_pydantic_json_schema__(
        self, _: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        blocks = [handler(block_of(name).__pydantic_core_schema__) for name in registry.forms()]
        return {"oneOf": blocks, "discriminator": {"propertyName": "kind"}}


AnyMechanism = Annotated[SerializeAsAny[MechanismSpec], BeforeValidator(_by_kind), _EveryKind()]
