"""Columns reduced to their values, whatever else a file says of them.

Integers of 128 bits in the schemas of Arrow, with which Arrow for Python opens no file at all.

A schema is a flatbuffer: tables whose fields lie where the table's own list of offsets says. The
type of an integer has its bits where the type of bytes of a fixed size has their number, so such a
column can be read as bytes by a change of five bytes in place, and be left alone. Polars writes
such columns.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator

import pyarrow as pa

from ..errors import folded, is_plain

_LEAVES = (
    pa.types.is_boolean,
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_date,
    pa.types.is_time,
    pa.types.is_timestamp,
    pa.types.is_duration,
    pa.types.is_null,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_large_binary,
)
_OF_VIEWS = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
_BYTES = {
    pa.string(): pa.binary(),
    pa.large_string(): pa.large_binary(),
    pa.string_view(): pa.binary_view(),
}
_SHORT, _LONG = 38, 76  # digits of a decimal of 128 and 256 bits
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
_Leaf = Callable[[pa.DataType], pa.DataType]


def bare_field(field: pa.Field) -> pa.Field:
    """Return a field without its metadata; raises TypeError as `bare` does."""
    return _field(field, _bare_leaf)


def bare(kind: pa.DataType) -> pa.DataType:
    """Return the type of the same values that names nothing else but the fields of structs.

    Metadata and the names of lists' items are dropped, at any depth. A dictionary becomes its
    values, since it may hold those of other rows; an extension becomes its storage type; a string
    view, which Arrow cannot sort yet, becomes a string; a timestamp of any time zone becomes one of
    UTC; a decimal whose scale Parquet has not becomes a wider one.

    Raises TypeError, whose message names the type, for what it cannot rebuild, which are unions,
    run-end encodings, and list views, which Arrow 25 casts to lists without their last offset; and
    for what not all readers of Parquet know: lists and binaries of the fixed size zero, structs
    without fields or with two of one name, and intervals.
    """
    return _rebuilt(kind, _bare_leaf)


def plain(column: pa.Array) -> pa.Array:
    """Return the same values as a column of a bare type; strings need not be UTF-8."""
    without_views = _rebuilt(column.type, _without_views)  # Arrow 25 decodes no dictionary of views
    return column.cast(without_views).cast(bare(column.type))


def unchecked(column: pa.Array) -> pa.Array:
    """Return a column's bytes as types that hold any: binary for strings, for example.

    A column of a type that is not released is returned as it is.
    """
    while isinstance(column, pa.ExtensionArray):
        column = column.storage
    try:
        kind = _rebuilt(column.type, _unchecked_leaf)
    except TypeError:
        return column
    return column.view(kind)


def numbered(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return a bare column with its moments and durations as integers.

    Python has not all moments that Arrow has.
    """
    kind = _rebuilt(column.type, _numbered_leaf)
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    return pa.chunked_array([chunk.view(kind) for chunk in chunks], kind)


def holds(kind: pa.DataType, is_one: Callable[[pa.DataType], bool]) -> bool:
    """Return whether a bare type, or one that it is made of, meets `is_one`."""
    parts = [kind.field(number).type for number in range(kind.num_fields)]
    return is_one(kind) or any(holds(part, is_one) for part in parts)


def _rebuilt(kind: pa.DataType, leaf: _Leaf) -> pa.DataType:
    """Return a type with its leaves changed, without metadata and the names of lists' items."""
    types = pa.types
    if types.is_struct(kind):
        if not kind.num_fields:
            raise TypeError("struct without fields")
        names = [field.name for field in kind]
        # DuckDB and Spark match names whatever their case.
        if len(set(map(folded, names))) < len(names):
            raise TypeError("struct that repeats a field's name, or has two that read alike")
        if not all(map(is_plain, names)):
            raise TypeError("struct with a field's name of several lines or hidden characters")
        return pa.struct([_field(field, leaf) for field in kind])
    if types.is_map(kind):
        if types.is_null(kind.key_type):
            raise TypeError("map without keys")
        key = pa.field("key", _rebuilt(kind.key_type, leaf), nullable=False)
        value = _field(kind.item_field, leaf).with_name("value")
        return pa.map_(key, value, kind.keys_sorted)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        item = _field(kind.value_field, leaf).with_name("element")
        if types.is_list(kind):
            return pa.list_(item)
        if types.is_large_list(kind):
            return pa.large_list(item)
        if not kind.list_size:
            raise TypeError("list of the fixed size zero")
        return pa.list_(item, kind.list_size)
    if types.is_nested(kind):
        raise TypeError(str(kind).split("<")[0])
    return leaf(kind)


def _field(field: pa.Field, leaf: _Leaf) -> pa.Field:
    kind = _rebuilt(field.type, leaf)
    return pa.field(field.name, kind, field.nullable or pa.types.is_null(kind))


def _bare_leaf(kind: pa.DataType) -> pa.DataType:
    types = pa.types
    if isinstance(kind, pa.BaseExtensionType) or types.is_dictionary(kind):
        return bare(kind.value_type if types.is_dictionary(kind) else kind.storage_type)
    if types.is_timestamp(kind) and kind.tz is not None:
        return pa.timestamp(kind.unit, "UTC")
    if types.is_decimal(kind):
        return _bare_decimal(kind)
    kind = _OF_VIEWS.get(kind, kind)
    sized = types.is_fixed_size_binary(kind) and kind.byte_width
    if sized or any(is_leaf(kind) for is_leaf in _LEAVES):
        return kind
    raise TypeError(str(kind).split("<")[0])


def _bare_decimal(kind: pa.DataType) -> pa.DataType:
    """Return a decimal whose scale is between 0 and its precision, as Parquet requires."""
    scale = max(kind.scale, 0)
    digits = max(kind.precision + scale - kind.scale, scale)
    if digits > _LONG:
        raise TypeError(str(kind))
    if (digits, scale) == (kind.precision, kind.scale):
        return kind
    return (pa.decimal128 if digits <= _SHORT else pa.decimal256)(digits, scale)


def _without_views(kind: pa.DataType) -> pa.DataType:
    if isinstance(kind, pa.BaseExtensionType):
        return _rebuilt(kind.storage_type, _without_views)
    return _of_values(kind, _without_views) or _OF_VIEWS.get(kind, kind)


def _unchecked_leaf(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_decimal(kind):
        return pa.binary(kind.byte_width)
    return _of_values(kind, _unchecked_leaf) or _BYTES.get(kind) or _numbered_leaf(kind)


def _of_values(kind: pa.DataType, leaf: _Leaf) -> pa.DataType | None:
    """Return a dictionary's type with that of its values changed; None for any other type."""
    if not pa.types.is_dictionary(kind):
        return None
    return pa.dictionary(kind.index_type, _rebuilt(kind.value_type, leaf), kind.ordered)


def _numbered_leaf(kind: pa.DataType) -> pa.DataType:
    types = pa.types
    if types.is_date(kind) or types.is_time(kind) or types.is_timestamp(kind):
        return pa.int32() if kind.bit_width == 32 else pa.int64()
    return pa.int64() if types.is_duration(kind) else kind


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


# The numbers of fields in Arrow's format, Schema.fbs, Message.fbs and File.fbs.
OF_MESSAGE, OF_FOOTER = 2, 1
_FIELDS = 1
_NAME, _KIND, _TYPE, _CHILDREN = 0, 2, 3, 5
_INTEGER, _FIXED_SIZE_BINARY = 2, 15
_WIDEST = 64
_DEEPEST = 64


def as_bytes(content: bytes, schema: int) -> tuple[bytes, list[str]]:
    """Return a flatbuffer with its wide integers as bytes, and the names of those columns.

    `schema` is the number of the root's field that is a schema. Raises struct.error, IndexError or
    UnicodeDecodeError for bytes that are not such a flatbuffer.
    """
    changed = bytearray(content)
    root = _Table(changed, _pointed(changed, 0))
    names = []
    for field in root.table(schema).tables(_FIELDS):
        if _narrow(field):
            names.append(field.string(_NAME))
    return bytes(changed), names


def _narrow(field: _Table, depth: int = 0) -> bool:
    """Change the wide integers in a field; return whether there are any."""
    found = False
    if field.at(_KIND) and field.content[field.at(_KIND)] == _INTEGER:
        bits = field.table(_TYPE).at(0)
        (width,) = struct.unpack_from("<i", field.content, bits) if bits else (0,)
        if width > _WIDEST:
            struct.pack_into("<i", field.content, bits, width // 8)
            field.content[field.at(_KIND)] = _FIXED_SIZE_BINARY
            found = True
    if depth < _DEEPEST:
        for child in field.tables(_CHILDREN):
            found |= _narrow(child, depth + 1)
    return found


class _Table:
    """A table of a flatbuffer."""

    def __init__(self, content: bytearray, start: int) -> None:
        self.content, self._start = content, start
        (back,) = struct.unpack_from("<i", content, start)
        self._offsets = start - back
        (size,) = struct.unpack_from("<H", content, self._offsets)
        self._fields = size // 2 - 2

    def at(self, number: int) -> int:
        """Return where a field lies; 0 if it has its default."""
        if number >= self._fields:
            return 0
        (offset,) = struct.unpack_from("<H", self.content, self._offsets + 4 + 2 * number)
        return self._start + offset if offset else 0

    def table(self, number: int) -> _Table:
        """Return the table that a field refers to."""
        return _Table(self.content, _pointed(self.content, self.at(number)))

    def tables(self, number: int) -> Iterator[_Table]:
        """Yield the tables of a field that is a list of them."""
        if not self.at(number):
            return
        start = _pointed(self.content, self.at(number))
        (size,) = struct.unpack_from("<I", self.content, start)
        for place in range(start + 4, start + 4 + 4 * size, 4):
            yield _Table(self.content, _pointed(self.content, place))

    def string(self, number: int) -> str:
        """Return the string that a field refers to."""
        start = _pointed(self.content, self.at(number))
        (size,) = struct.unpack_from("<I", self.content, start)
        return self.content[start + 4 : start + 4 + size].decode()


def _pointed(content: bytearray, place: int) -> int:
    """Return the place that an offset at a place leads to."""
    (offset,) = struct.unpack_from("<I", content, place)
    return place + int(offset)
