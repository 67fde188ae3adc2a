"""A reader of Parquet, a row group at a time."""

from __future__ import annotations

import base64
import itertools
import os
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from ..errors import InputError, blamed, client_errors, cut
from .bare import OF_MESSAGE, as_bytes, bare, holds, plain
from .columns import (
    NO_LIST,
    UNREAD,
    batch_rows,
    checked_schema,
    parts,
    readable,
)
from .documents import Corpus, Documents, Plan, Split

_BUFFER_BYTES = 1 << 20
_SCHEMA, _NO_SCHEMA = b"ARROW:schema", b"arrow:schema"
_HEAD = 8  # of a message of Arrow: a mark, and the length
_DAMAGED = (
    "is not a readable Parquet file: it is truncated, damaged or of another format; write it again"
)
_DAMAGED_GROUP = "the file is damaged; write it again"
_END = b"PAR1"  # of a file, and its beginning
_TAIL = struct.Struct("<I4s")  # the footer's length, and the end of a file
_IS_ENCRYPTED = "is encrypted, or some of its columns are; write it again without encryption"
_ENCRYPTED = ("encrypted metadata", "Cannot decrypt", "file decryptor", "Decryption not set")
_NESTED = ("Map keys", "Group must", "Key-value", "MAP-annotated", "LIST-annotated", "Non-repeated")
"""The beginnings of Arrow's messages for schemas that it refuses to read."""


def plan(uri: str, corpus: Corpus) -> Plan:
    """Plan a split for each row group; raises InputError for a missing column or a wrong type."""
    with opened_file(uri) as opened:
        schema, metadata = opened.file.schema_arrow, opened.file.metadata
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    leaves = [(n, metadata.schema.column(n)) for n in range(metadata.num_columns)]
    named = {corpus.text, *corpus.columns}
    flat = [n for n, leaf in leaves if leaf.path in named and leaf.max_repetition_level == 0]
    for number, group in enumerate(groups):
        _refuse_further_values(uri, number, group, flat)
    if not metadata.num_rows and not any(group.num_rows for group in groups):
        return Plan([], pa.schema([]))  # an empty table may have lost its columns' types
    columns = checked_schema(uri, schema, corpus, opened.wide)
    splits, first_row = [], 0
    for number, group in enumerate(groups):
        if group.num_rows:
            documents = batch_rows(group.num_rows, group.total_byte_size)
            splits.append(Split(uri, "parquet", number, first_row, group.num_rows, documents))
        first_row += group.num_rows
    if first_row != metadata.num_rows:
        raise InputError(
            f"input.path: {uri} has {first_row:,} rows in its row groups, and "
            f"{metadata.num_rows:,} by its footer: {_DAMAGED_GROUP}"
        )
    return Plan(splits, columns)


def _refuse_further_values(
    uri: str, number: int, group: pq.RowGroupMetaData, columns: Sequence[int]
) -> None:
    """Raise InputError for a column with more values than the group has rows: Arrow drops them."""
    for column in columns:
        if (values := group.column(column).num_values) > group.num_rows:
            raise InputError(
                f"input.path: row group {number} of {uri} has {group.num_rows:,} rows, and "
                f"{values:,} values in a column: {_DAMAGED_GROUP}"
            )


def text_bytes(uri: str, column: str) -> int:
    """Return the size of a column before compression, from a file's footer."""
    with open_file(uri) as file:
        metadata = file.metadata
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    chunks = [group.column(number) for group in groups for number in range(group.num_columns)]
    return sum(one.total_uncompressed_size for one in chunks if one.path_in_schema == column)


@contextmanager
def open_file(uri: str) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file anywhere; raises InputError if it is not one, or is truncated."""
    with opened_file(uri) as opened:
        yield opened.file


class Opened(NamedTuple):
    """A Parquet file.

    Attributes:
        raw: its bytes.
        file: the same, as Arrow reads it.
        wide: the columns with integers of 128 bits, which are read as bytes.
    """

    raw: BinaryIO
    file: pq.ParquetFile
    wide: list[str]

    def otherwise(self, metadata: pq.FileMetaData | None = None, **options: Any) -> pq.ParquetFile:
        """Return the same file, read with another footer or other options."""
        return _parsed(self.raw, metadata=metadata, **options)


@contextmanager
def opened_file(uri: str) -> Iterator[Opened]:
    """Open a file as `open_file` does, also one whose integers are too wide for Arrow."""
    place = f"input.path: {uri}"
    with client_errors(place, _DAMAGED):
        raw = FileSystems.open(uri, compression_type=CompressionTypes.UNCOMPRESSED)
    with raw:
        with faults(place):
            opened = _opened_in(raw)
        _refuse_signed(raw, opened.file, place)
        yield opened


def _opened_in(raw: BinaryIO) -> Opened:
    try:
        return Opened(raw, _parsed(raw), [])
    except pa.ArrowNotImplementedError:
        metadata, wide = _with_wide_integers_as_bytes(raw)
        if not wide:
            raise
        return Opened(raw, _parsed(raw, metadata=metadata), wide)


def _parsed(raw: BinaryIO, **options: Any) -> pq.ParquetFile:
    return pq.ParquetFile(
        raw,
        pre_buffer=False,  # it would hold whole row groups
        buffer_size=_BUFFER_BYTES,
        page_checksum_verification=True,  # of the pages that have a checksum
        **options,
    )


def _with_wide_integers_as_bytes(raw: BinaryIO) -> tuple[pq.FileMetaData, list[str]]:
    """Return a file's metadata, in which Arrow's schema has no integer of 128 bits.

    The second value has the names of those columns; there may be none.
    """
    footer = _footer(raw)
    try:
        encoded = pq.ParquetFile(_without_arrow_schema(footer)).metadata.metadata[_NO_SCHEMA]
        message = base64.b64decode(encoded)
        body, wide = as_bytes(message[_HEAD:], OF_MESSAGE)
    except (struct.error, IndexError, KeyError, TypeError, ValueError):
        raise pa.ArrowInvalid("the schema is damaged") from None
    changed = base64.b64encode(message[:_HEAD] + body)
    return pq.ParquetFile(_as_file(footer.replace(encoded, changed))).metadata, wide


def _footer(raw: BinaryIO) -> bytes:
    raw.seek(-_TAIL.size, os.SEEK_END)
    size, _ = _TAIL.unpack(raw.read(_TAIL.size))
    raw.seek(-_TAIL.size - size, os.SEEK_END)
    return raw.read(size)


def _without_arrow_schema(footer: bytes) -> pa.NativeFile:
    return _as_file(footer.replace(_SCHEMA, _NO_SCHEMA))


def _as_file(footer: bytes) -> pa.NativeFile:
    """Return a file that has a footer, and none of the pages that it names."""
    return pa.BufferReader(_END + footer + _TAIL.pack(len(footer), _END))


def _refuse_signed(raw: BinaryIO, file: pq.ParquetFile, place: str) -> None:
    """Raise InputError for a footer with a signature: columns of such a file are encrypted.

    Arrow 25 ends the process when it is asked for the metadata of an encrypted column.
    """
    raw.seek(-_TAIL.size, os.SEEK_END)
    length, _ = _TAIL.unpack(raw.read(_TAIL.size))
    if length > file.metadata.serialized_size:
        raise InputError(f"{place} {_IS_ENCRYPTED}")


@contextmanager
def faults(place: str, damaged: str = _DAMAGED) -> Iterator[None]:
    """Turn what Arrow raises for a file into an InputError that names the place and the fault."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeError) as error:
        raise blamed(error, place, _fault(error, damaged)) from None


def _fault(error: Exception, damaged: str) -> str:
    """Return the fault that makes Arrow refuse a file, and its remedy."""
    said = str(error)  # it may quote the file, and is not repeated
    if any(phrase in said for phrase in _ENCRYPTED):
        return _IS_ENCRYPTED
    if isinstance(error, UnicodeError):
        return "has a column name that is not UTF-8; rename the column"
    if isinstance(error, pa.ArrowNotImplementedError):
        return UNREAD
    if said.startswith(_NESTED):
        return (
            "has a list or a map that breaks the rules of Parquet, such as a map of keys that may "
            "be null, and Arrow then reads no column; write it again"
        )
    return damaged


def table_in(content: bytes, columns: Sequence[str] | None = None) -> pa.Table:
    """Return the table in a file's bytes, or those of `columns` that it has.

    A thread of `pq.read_table` may release the bytes while the interpreter ends, and abort it.
    """
    return pq.ParquetFile(pa.BufferReader(content)).read(columns, use_threads=False)


def read(split: Split, corpus: Corpus) -> Iterator[Documents]:
    """Yield the documents of a row group, in batches that depend on the file alone.

    Raises InputError for a group that cannot be read to its end. Arrow ends without an error where
    a column has fewer values than the group has rows.
    """
    place = f"input.path: row group {split.row_group} of {split.uri}"
    row = split.first_row
    columns = list(dict.fromkeys([corpus.text, *corpus.columns]))
    with opened_file(split.uri) as opened:
        batches = _batches(opened, split, columns)
        while True:
            with faults(place, f"cannot be read: {_DAMAGED_GROUP}"):
                batch, wrong = next(batches, (None, {}))
            if batch is None:
                break
            yield readable(split.uri, row, batch, corpus, wrong)
            row += len(batch)
    if (rows := row - split.first_row) != split.documents:
        raise InputError(
            f"{place} has {split.documents:,} rows by its metadata, and only {rows:,} can be read: "
            f"{_DAMAGED_GROUP}"
        )


def _batches(
    opened: Opened, split: Split, columns: Sequence[str]
) -> Iterator[tuple[pa.RecordBatch, dict[int, str]]]:
    """Yield the batches of a split, with their unreadable rows, each with the reason.

    Arrow does not read lists of a fixed size with a null, and reads moments of INT96 beyond the
    years 1677 to 2262 as others: the former are read as lists of any size, the latter twice.
    """
    kinds = {name: opened.file.schema_arrow.field(name).type for name in columns}
    listed = [name for name in columns if holds(bare(kinds[name]), pa.types.is_fixed_size_list)]
    moments = _of_96_bits(opened.file, columns)

    def batches(file: pq.ParquetFile, names: Sequence[str]) -> Iterator[Any]:
        yield from file.iter_batches(
            batch_size=split.batch_documents,
            row_groups=[split.row_group],
            columns=list(names),
            use_threads=False,  # a thread may remain, and wait for ever when the interpreter ends
        )

    others: Iterator[Any] = itertools.repeat(None)
    seconds: Iterator[Any] = itertools.repeat(None)
    if listed:
        metadata = pq.ParquetFile(_without_arrow_schema(_footer(opened.raw))).metadata
        others = batches(opened.otherwise(metadata), listed)
    if moments:
        seconds = batches(opened.otherwise(coerce_int96_timestamp_unit="s"), moments)
    main = batches(opened.file, [name for name in columns if name not in listed])
    for given, lists, exact in zip(main, others, seconds, strict=False):
        batch, wrong = given, dict[int, str]()
        for name in moments:
            wrong |= dict.fromkeys(
                _beyond(batch.column(name), exact.column(name)),
                f"the column {cut(name)} has an INT96 timestamp outside of the years 1677 to 2262",
            )
        for name in listed:
            column, rows = _of_a_fixed_size(lists.column(name), bare(kinds[name]))
            batch = batch.append_column(name, column)
            wrong |= dict.fromkeys(rows, f"the column {cut(name)} {NO_LIST}")
        yield batch, wrong


def _of_96_bits(file: pq.ParquetFile, columns: Sequence[str]) -> list[str]:
    """Return the columns that have moments of INT96."""
    leaves = map(file.metadata.schema.column, range(file.metadata.num_columns))
    paths = [f"{leaf.path}." for leaf in leaves if leaf.physical_type == "INT96"]
    return [name for name in columns if any(path.startswith(f"{name}.") for path in paths)]


def _beyond(column: pa.Array, exact: pa.Array) -> list[int]:
    """Return the rows with moments that are not the same in seconds, which always are exact."""
    wrong: list[int] = []
    for (moments, rows), (seconds, _) in zip(parts(column), parts(exact), strict=True):
        if pa.types.is_timestamp(moments.type) and pa.types.is_timestamp(seconds.type):
            found = moments.view(pa.int64()).fill_null(0).to_numpy() // 10**9
            true = seconds.view(pa.int64()).fill_null(0).to_numpy()
            if seconds.type.unit == "s":
                wrong += rows[found != true].tolist()
    return wrong


def _of_a_fixed_size(lists: pa.Array, kind: pa.DataType) -> tuple[pa.Array, list[int]]:
    """Return lists as lists of a fixed size, and the rows that have others."""
    try:
        return plain(lists).cast(kind), []
    except pa.ArrowInvalid:
        wrong, found = [], []
    for row in range(len(lists)):
        try:
            found.append(plain(lists.slice(row, 1)).cast(kind))
        except pa.ArrowInvalid:
            wrong.append(row)
            found.append(pa.nulls(1, kind))
    return pa.concat_arrays(found), wrong
