"""Columns reduced to their values: whatever else a file says of them may hold anything."""

from __future__ import annotations

import pyarrow as pa

_LEAVES = (
    pa.types.is_primitive,
    pa.types.is_decimal,
    pa.types.is_null,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_fixed_size_binary,
)
_UNKNOWN = "no plain form of this type is known"
_DIFFER = "no type has the values of both"
_SIGNED = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_WIDENING = (
    _SIGNED,
    (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
    (pa.float16(), pa.float32(), pa.float64()),
    (pa.string(), pa.large_string()),
    (pa.binary(), pa.large_binary()),
)
_UNITS = ("s", "ms", "us", "ns")


def bare_field(field: pa.Field) -> pa.Field:
    """Return a field without its metadata; raises TypeError as `bare` does."""
    return pa.field(field.name, bare(field.type), field.nullable)


def bare(kind: pa.DataType) -> pa.DataType:
    """Return the type of the same values that names nothing else but the fields of structs.

    Metadata and the names of lists' items are dropped, at any depth. A dictionary becomes its
    values, since it may hold those of other rows; an extension becomes its storage type; a string
    view, which Arrow cannot sort yet, becomes a string; a timestamp of any time zone becomes one of
    UTC. Raises TypeError for types that it cannot rebuild: unions, run-end encodings, and list
    views, which Arrow 25 casts to lists without their last offset.
    """
    while isinstance(kind, pa.BaseExtensionType) or pa.types.is_dictionary(kind):
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind.storage_type
    return _bare_nest(kind) if pa.types.is_nested(kind) else _bare_leaf(kind)


def _bare_nest(kind: pa.DataType) -> pa.DataType:
    types = pa.types
    if types.is_struct(kind):
        return pa.struct([bare_field(inner) for inner in kind])
    if types.is_map(kind):
        key = pa.field("key", bare(kind.key_type), nullable=False)
        return pa.map_(key, _named("value", kind.item_field), kind.keys_sorted)
    if types.is_fixed_size_list(kind):
        return pa.list_(_named("element", kind.value_field), kind.list_size)
    if types.is_large_list(kind):
        return pa.large_list(_named("element", kind.value_field))
    if types.is_list(kind):
        return pa.list_(_named("element", kind.value_field))
    raise TypeError(_UNKNOWN)


def _named(name: str, field: pa.Field) -> pa.Field:
    return bare_field(field).with_name(name)


def _bare_leaf(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return pa.timestamp(kind.unit, "UTC")
    if any(is_leaf(kind) for is_leaf in _LEAVES):
        return kind
    raise TypeError(_UNKNOWN)


def plain(column: pa.Array) -> pa.Array:
    """Return the same values as a column of a bare type."""
    return column.cast(bare(column.type))


def common(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """Return the narrowest type that has the values of two bare types, all as they are.

    Numbers with and without a fraction have none, nor have moments with and without a time zone.
    Raises TypeError if there is none.
    """
    if one.equals(other) or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    return _common_nest(one, other) if one.num_fields else _common_leaf(one, other)


def common_field(one: pa.Field, other: pa.Field) -> pa.Field:
    """Return a field of both's values; raises TypeError as `common` does, or for other names."""
    if one.name != other.name:
        raise TypeError(_DIFFER)
    return pa.field(one.name, common(one.type, other.type), one.nullable or other.nullable)


def _common_nest(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    types = pa.types
    if types.is_struct(one) and types.is_struct(other) and one.num_fields == other.num_fields:
        return pa.struct(list(map(common_field, one, other)))
    if types.is_map(one) and types.is_map(other) and one.keys_sorted == other.keys_sorted:
        key = pa.field("key", common(one.key_type, other.key_type), nullable=False)
        return pa.map_(key, common_field(one.item_field, other.item_field), one.keys_sorted)
    if types.is_fixed_size_list(one) and types.is_fixed_size_list(other):
        if one.list_size == other.list_size:
            return pa.list_(common_field(one.value_field, other.value_field), one.list_size)
    elif _is_list(one) and _is_list(other):
        item = common_field(one.value_field, other.value_field)
        large = types.is_large_list(one) or types.is_large_list(other)
        return pa.large_list(item) if large else pa.list_(item)
    raise TypeError(_DIFFER)


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _common_leaf(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    types = pa.types
    for widening in _WIDENING:
        if one in widening and other in widening:
            return max(one, other, key=widening.index)
    if types.is_integer(one) and types.is_integer(other):
        return _common_integer(one, other)
    if types.is_decimal(one) and types.is_decimal(other) and one.scale == other.scale:
        return max(one, other, key=lambda kind: kind.precision)
    if types.is_timestamp(one) and types.is_timestamp(other) and one.tz == other.tz:
        return max(one, other, key=lambda kind: _UNITS.index(kind.unit))
    raise TypeError(_DIFFER)


def _common_integer(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """Return the narrowest integer with the values of one that has a sign, and one that has not."""
    signed, unsigned = (one, other) if one in _SIGNED else (other, one)
    bits = max(signed.bit_width, 2 * unsigned.bit_width)
    if bits > _SIGNED[-1].bit_width:
        raise TypeError(_DIFFER)
    return next(kind for kind in _SIGNED if kind.bit_width == bits)
