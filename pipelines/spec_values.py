"""The values that a spec holds: exact numbers, counts, places."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from transforms.errors import InputError

LARGEST_EPSILON = 10**9  # nothing is private long before this


def _exact(value: object) -> Fraction:
    """The decimal as written: 0.1 is 1/10, not the nearest binary fraction."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise PydanticCustomError("number", "is not a number; give a positive number")
    if not 0 < value < LARGEST_EPSILON:
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


def _place(value: str) -> str:
    if not value.strip():
        raise PydanticCustomError("path", "is not allowed; give a path or a URI")
    return absolute(value)


def absolute(value: str) -> str:
    """Local paths become absolute, so that positions do not depend on the working directory.

    Raises InputError for an empty one.
    """
    if not value.strip():
        raise InputError(f"{value!r} is no path; give a path or a URI")
    return value.rstrip("/") if "://" in value else str(Path(value).expanduser().absolute())


Epsilon = Annotated[Fraction, BeforeValidator(_exact)]
Delta = Annotated[Fraction, BeforeValidator(_exact), AfterValidator(_probability)]
Count = Annotated[int, BeforeValidator(_count)]
Location = Annotated[str, AfterValidator(_place)]
Column = Annotated[str, Field(min_length=1)]


class Strict(BaseModel):
    """A block of a spec: unknown keys are refused, and nothing is converted."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
