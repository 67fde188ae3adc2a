"""Integers of 128 bits in the schemas of Arrow, with which Arrow for Python opens no file at all.

A schema is a flatbuffer: tables whose fields lie where the table's own list of offsets says. The
type of an integer has its bits where the type of bytes of a fixed size has their number, so such a
column can be read as bytes by a change of five bytes in place, and be left alone. Polars writes
such columns.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

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
