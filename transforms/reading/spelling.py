"""One spelling for each value of a column that tells documents or users apart.

The files of a corpus, and the partitions of a ledger, may hold one id in columns of several types:
pandas writes whole numbers as floating-point ones where a value is missing. Arrow spells
12345678901 as `12345678901` and, in float64, as `1.2345678901e+10`. A UUID is text in one file
and, in another, the 16 bytes of Parquet's type.
"""

from __future__ import annotations

import uuid
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InputError, cut

_EXACT = 2.0**53
"""The largest number up to which float64 holds every whole number."""

SPELLED = ("input.id", "mechanism.user")
"""The keys of a spec whose columns are spelled."""
_UUID_BYTES = 16


def spelled(values: pa.ChunkedArray, key: str, column: str) -> list[str | None]:
    """Return each value as text, equal numbers alike whatever their type; None for null.

    Args:
        values: strings, bytes of UTF-8, whole numbers, booleans, numbers of another type, or bytes
            of one size.
        key: the key of the spec that names the column, for errors.
        column: its name.

    Raises:
        InputError: the type has several spellings, such as a timestamp; or a floating-point number
            is not whole, or so large that it may stand for several ids. It quotes no value.
    """
    kind = values.type
    if pa.types.is_dictionary(kind):
        return spelled(pc.cast(values, kind.value_type), key, column)
    if pa.types.is_floating(kind):
        return _spelled_floats(values, key, column)
    if pa.types.is_decimal(kind):
        return [None if one is None else plain_digits(one) for one in values.to_pylist()]
    if not has_spelling(kind):
        raise InputError(
            f"{key}: the column {cut(column)} is of type {kind}, and another file may write an "
            "equal value in another form; give strings or whole numbers"
        )
    found: list[str | None] = as_text(values).to_pylist()
    return found


def as_text(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return values of one file as text: those of 16 bytes as UUIDs, others of one size as digits.

    Equal values of another type may have another text; `spelled` has one for both.
    """
    if not pa.types.is_fixed_size_binary(values.type):
        return values.cast(pa.large_string())
    texts = [None if one is None else _spelled_bytes(one) for one in values.to_pylist()]
    return pa.chunked_array([pa.array(texts, pa.large_string())])


def has_spelling(kind: pa.DataType) -> bool:
    """Return whether `spelled` takes columns of a type."""
    types = pa.types
    if types.is_dictionary(kind) or isinstance(kind, pa.BaseExtensionType):
        return has_spelling(kind.value_type if types.is_dictionary(kind) else kind.storage_type)
    return any(
        is_of(kind)
        for is_of in (
            types.is_string,
            types.is_large_string,
            types.is_string_view,
            types.is_binary,
            types.is_large_binary,
            types.is_binary_view,
            types.is_fixed_size_binary,
            types.is_integer,
            types.is_floating,
            types.is_decimal,
            types.is_boolean,
            types.is_null,
        )
    )


def _spelled_bytes(value: bytes) -> str:
    """Return the text of a UUID, or the hexadecimal digits of values of another size."""
    return str(uuid.UUID(bytes=value)) if len(value) == _UUID_BYTES else value.hex()


def _spelled_floats(values: pa.ChunkedArray, key: str, column: str) -> list[str | None]:
    wide = values.cast(pa.float64())
    whole = pc.and_(
        pc.less_equal(pc.abs(wide), _EXACT), pc.equal(pc.trunc(wide), wide)
    )  # false for NaN
    if not pc.all(whole, min_count=0).as_py():
        raise InputError(
            f"{key}: the column {cut(column)} has floating-point numbers that are not whole, or "
            "are too large to be exact, so that one may stand for several; give strings or whole "
            "numbers"
        )
    found: list[str | None] = wide.cast(pa.int64()).cast(pa.large_string()).to_pylist()
    return found


def plain_digits(value: Decimal) -> str:
    """Return a number without an exponent and without zeros at the end."""
    digits = format(value, "f")
    if "." in digits:
        digits = digits.rstrip("0").rstrip(".")
    return "0" if digits == "-0" else digits
