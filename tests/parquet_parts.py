"""Parquet files taken apart: footers and page headers as values that a test changes.

Thrift's compact protocol, as far as Parquet has it. A struct is a list of [field, type, value].
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

BOOLEANS, BYTE, INTEGERS, BINARY, LISTS, STRUCT = (1, 2), 3, (4, 5, 6), 8, (9, 10), 12
DICTIONARY = 2
"""The type of a page that is a dictionary."""
Struct = list[list[Any]]


class ParquetParts:
    """A file as its footer and, for each column chunk, its metadata and pages.

    Attributes:
        footer: the file's metadata.
        chunks: for each column chunk, its entry in the footer, the pages (header and body), and
            the bytes after the last page.
    """

    def __init__(self, content: bytes) -> None:
        size = int.from_bytes(content[-8:-4], "little")
        self.footer: Struct = _struct(content[-8 - size : -8], 0)[0]
        self.chunks: list[tuple[Struct, list[list[Any]], bytearray]] = []
        for group in value(self.footer, 4)[1]:
            for chunk in value(group, 1)[1]:
                own = value(chunk, 3)
                at = min(filter(None, (value(own, 11), value(own, 9))))
                end, pages = at + value(own, 7), list[list[Any]]()
                while at < end:
                    header, start = _struct(content, at)
                    at = start + value(header, 3)
                    pages.append([header, content[start:at]])
                self.chunks.append((chunk, pages, bytearray()))

    def content(self) -> bytes:
        """Return the file, with all sizes and offsets made to fit."""
        found = bytearray(b"PAR1")
        for chunk, pages, tail in self.chunks:
            own, start = value(chunk, 3), len(found)
            first = next(header for header, _ in pages if value(header, 1) != DICTIONARY)
            for header, body in pages:
                put(header, 3, 5, len(body))
                if header is first:
                    put(own, 9, 6, len(found))
                elif value(header, 1) == DICTIONARY:
                    put(own, 11, 6, len(found))
                found += _written(STRUCT, header) + body
            found += tail
            put(own, 7, 6, len(found) - start)
        footer = _written(STRUCT, self.footer)
        return bytes(found) + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def value(struct: Struct, field: int) -> Any:
    """The value of a field; None if it is absent."""
    return next((one[2] for one in struct if one[0] == field), None)


def put(struct: Struct, field: int, kind: int, given: Any) -> None:
    """Set a field."""
    struct[:] = sorted([one for one in struct if one[0] != field] + [[field, kind, given]])


def unpacked(page: list[Any]) -> bytes:
    """The body of a page, decompressed."""
    found: bytes = pa.Codec("zstd").decompress(page[1], value(page[0], 2), asbytes=True)
    return found


def repack(page: list[Any], body: bytes) -> None:
    """Set the body of a page, and its size."""
    put(page[0], 2, 5, len(body))
    page[1] = pa.Codec("zstd").compress(body, asbytes=True)


def _number(data: bytes, at: int) -> tuple[int, int]:
    found = shift = 0
    while True:
        byte = data[at]
        at, found, shift = at + 1, found | (byte & 127) << shift, shift + 7
        if byte < 128:
            return found, at


def _signed(data: bytes, at: int) -> tuple[int, int]:
    found, at = _number(data, at)
    return (found >> 1) ^ -(found & 1), at


def _value(data: bytes, at: int, kind: int) -> tuple[Any, int]:
    if kind in BOOLEANS:
        return kind == 1, at
    if kind == BYTE:
        return data[at], at + 1
    if kind in INTEGERS:
        return _signed(data, at)
    if kind == BINARY:
        size, at = _number(data, at)
        return data[at : at + size], at + size
    if kind in LISTS:
        size, of, at = data[at] >> 4, data[at] & 15, at + 1
        if size == 15:
            size, at = _number(data, at)
        items = []
        for _ in range(size):
            item, at = (data[at], at + 1) if of in BOOLEANS else _value(data, at, of)
            items.append(item)
        return (of, items), at
    return _struct(data, at)


def _struct(data: bytes, at: int) -> tuple[Struct, int]:
    found: Struct = []
    field = 0
    while data[at]:
        kind, step = data[at] & 15, data[at] >> 4
        at += 1
        if step:
            field += step
        else:
            field, at = _signed(data, at)
        item, at = _value(data, at, kind)
        found.append([field, kind, item])
    return found, at + 1


def _digits(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def _written(kind: int, given: Any) -> bytes:
    if kind in BOOLEANS:
        return b""
    if kind == BYTE:
        return bytes([given])
    if kind in INTEGERS:
        return _digits(2 * given if given >= 0 else -2 * given - 1)
    if kind == BINARY:
        return _digits(len(given)) + bytes(given)
    if kind in LISTS:
        of, items = given
        short = len(items) < 15
        head = bytes([(len(items) if short else 15) << 4 | of])
        head += b"" if short else _digits(len(items))
        return head + b"".join(
            bytes([item]) if of in BOOLEANS else _written(of, item) for item in items
        )
    found, last = b"", 0
    for field, declared, item in given:
        of = (1 if item else 2) if declared in BOOLEANS else declared
        step = field - last
        found += bytes([step << 4 | of]) if 0 < step < 16 else bytes([of]) + _digits(2 * field)
        found, last = found + _written(of, item), field
    return found + b"\0"
