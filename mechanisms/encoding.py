"""A canonical encoding of values: the same value always has the same bytes, and no other has them.

Everything that noise depends on is encoded this way. A `repr` would not do: it changes when a class
is renamed, and need not change when a law does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

Value = (
    str | int | float | bool | bytes | Fraction | Decimal | None | Sequence["Value"]
    | Mapping[str, "Value"]
)  # fmt: skip
"""A value that can be encoded. A string enumeration is its value; a list and a tuple are equal."""


def encode(values: Mapping[str, Value]) -> bytes:
    """Encode named values as canonical JSON, in UTF-8.

    Raises TypeError for a value of another type, and ValueError for text that is not Unicode.
    """
    plain = json.dumps(_plain(values), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return plain.encode()


def _plain(value: object) -> Any:  # noqa: PLR0911 - a case for each type
    match value:
        case None | bool():
            return value
        case str():
            return str.__str__(value)
        case int():
            return int(value)
        case float():
            return {"$float": value.hex()}
        case bytes():
            return {"$bytes": value.hex()}
        case Fraction():
            return {"$fraction": [value.numerator, value.denominator]}
        case Decimal():
            return {"$decimal": str(value)}
        case Mapping():
            return {_name(name): _plain(inner) for name, inner in value.items()}
        case list() | tuple():
            return [_plain(inner) for inner in value]
    raise TypeError(f"a {type(value).__name__} has no canonical encoding")


def _name(name: object) -> str:
    """Return a name as it is; names that begin with $ are kept for the types that JSON lacks."""
    if not isinstance(name, str) or name.startswith("$"):
        raise TypeError("a name is a string that does not begin with $")
    return str(name)
