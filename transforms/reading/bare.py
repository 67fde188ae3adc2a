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
