"""A reader of Parquet, a row group at a time."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from quietcorpus.transforms.errors import InputError, blamed, client_errors
from quietcorpus.transforms.reading.columns import batch_rows, checked_schema, readable
from quietcorpus.transforms.reading.documents import Corpus, Documents, Plan, Split

_BUFFER_BYTES = 1 << 20
_DAMAGED = (
    "is not a readable Parquet file: it is truncated, damaged or of another format; write it again"
)
_DAMAGED_GROUP = "the file is damaged; write it again"
_TAIL = struct.Struct("<I4s")  # the footer's length, and the end of a file
_IS_ENCRYPTED = "is encrypted, or some of its columns are; write it again without encryption"
_ENCRYPTED = ("encrypted metadata", "Cannot decrypt", "file decryptor", "Decryption not set")
_NESTED = ("Map keys", "Group must", "Key-value", "MAP-annotated", "LIST-annotated", "Non-repeated")
"""The beginnings of Arrow's messages for schemas that it refuses to read."""


def plan(uri: str, corpus: Corpus) -> Plan:
    """Plan a split for each row group; raises InputError for a missing column or a wrong type."""
    with open_file(uri) as file:
        schema, metadata = file.schema_arrow, file.metadata
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    if not metadata.num_rows and not any(group.num_rows for group in groups):
        return Plan([], pa.schema([]))  # an empty table may have lost its columns' types
    columns = checked_schema(uri, schema, corpus)
    leaves = [(n, metadata.schema.column(n)) for n in range(metadata.num_columns)]
    named = {corpus.text, *corpus.columns}
    flat = [n for n, leaf in leaves if leaf.path in named and leaf.max_repetition_level == 0]
    splits, first_row = [], 0
    for number, group in enumerate(groups):
        _refuse_further_values(uri, number, group, flat)
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
    place = f"input.path: {uri}"
    with client_errors(place, _DAMAGED):
        raw = FileSystems.open(uri, compression_type=CompressionTypes.UNCOMPRESSED)
    with raw:
        with faults(place):
            file = pq.ParquetFile(
                raw,
                pre_buffer=False,  # it would hold whole row groups
                buffer_size=_BUFFER_BYTES,
                page_checksum_verification=True,  # of the pages that have a checksum
            )
        _refuse_signed(raw, file, place)
        yield file


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
        return (
            f"has a type, an encoding or a compression that Arrow {pa.__version__} does not read; "
            "write it again with another"
        )
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
    with open_file(split.uri) as file:
        batches = file.iter_batches(
            batch_size=split.batch_documents,
            row_groups=[split.row_group],
            columns=columns,
            use_threads=False,  # a thread may remain, and wait for ever when the interpreter ends
        )
        while True:
            with faults(place, f"cannot be read: {_DAMAGED_GROUP}"):
                batch = next(batches, None)
            if batch is None:
                break
            yield readable(split.uri, row, batch, corpus)
            row += len(batch)
    if (rows := row - split.first_row) != split.documents:
        raise InputError(
            f"{place} has {split.documents:,} rows by its metadata, and only {rows:,} can be read: "
            f"{_DAMAGED_GROUP}"
        )
