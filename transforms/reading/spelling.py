"""One spelling for each value of a column that tells documents or users apart.

The files of a corpus, and the partitions of a ledger, may hold one id in columns of several types:
pandas writes whole numbers as floating-point ones where a value is missing. Arrow spells
12345678901 as `12345678901` and, in float64, as `1.2345678901e+10`.
"""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from quietcorpus.transforms.errors import InputError

_EXACT = 2.0**53
"""The largest number up to which float64 holds every whole number."""


def spelled(values: pa.ChunkedArray, key: str, column: str) -> list[str | None]:
    """Return each value as text, equal numbers alike whatever their type; None for null.

    Args:
        values: strings, whole numbers, booleans, or numbers of another type.
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
        return [None if one is None else _plain(one) for one in values.to_pylist()]
    if not (
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_string_view(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
        or pa.types.is_null(kind)
    ):
        raise InputError(
            f"{key}: the column {column!r} is of type {kind}, and another file may write an equal "
            "value in another form; give strings or whole numbers"
        )
    found: list[str | None] = values.cast(pa.large_string()).to_pylist()
    return found


def _spelled_floats(values: pa.ChunkedArray, key: str, column: str) -> list[str | None]:
    wide = values.cast(pa.float64())
    whole = pc.and_(
        pc.less_equal(pc.abs(wide), _EXACT), pc.equal(pc.trunc(wide), wide)
    )  # false for NaN
    if not pc.all(whole, min_count=0).as_py():
        raise InputError(
            f"{key}: the column {column!r} has floating-point numbers that are not whole, or are "
            "too large to be exact, so that one may stand for several; give strings or whole "
            "numbers"
        )
    found: list[str | None] = wide.cast(pa.int64()).cast(pa.large_string()).to_pylist()
    return found


def _plain(value: Decimal) -> str:
    """Return a number without an exponent and without zeros at the end."""
    digits = format(value, "f")
    if "." in digits:
        digits = digits.rstrip("0").rstrip(".")
    return "0" if digits == "-0" else digits
