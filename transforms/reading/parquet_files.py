"""A reader of Parquet, a row group at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from quietcorpus.transforms.errors import InputError, blamed, client_errors
from quietcorpus.transforms.reading.bare import bare_field, plain
from quietcorpus.transforms.reading.documents import (
    BATCH_BYTES,
    BATCH_DOCUMENTS,
    Corpus,
    Documents,
    Plan,
    Reject,
    Split,
    missing_column,
)

_BUFFER_BYTES = 1 << 20
_DAMAGED = (
    "is not a readable Parquet file: it is truncated, damaged or of another format; write it again"
)


def plan(uri: str, corpus: Corpus) -> Plan:
    """Plan a split for each row group; raises InputError for a missing column or a wrong type."""
    with open_file(uri) as file:
        schema, metadata = file.schema_arrow, file.metadata
    for key, column in [("input.text", corpus.text), *corpus.others]:
        if schema.names.count(column) != 1:
            raise InputError(missing_column(key, column, uri, schema.names))
    if not _is_string(kind := schema.field(corpus.text).type):
        raise InputError(
            f"input.text: {corpus.text} in {uri} is of type {kind}, not string; "
            "name the column that holds the text"
        )
    for key, column in corpus.compared:
        if not (_is_string(kind := schema.field(column).type) or _is_plain(kind)):
            raise InputError(
                f"{key}: {column} in {uri} is of type {kind}; name a column of strings or numbers"
            )
    splits, first_row = [], 0
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        if group.num_rows:
            size = max(1, group.total_byte_size // group.num_rows)
            documents = int(np.clip(BATCH_BYTES // size, 1, BATCH_DOCUMENTS))
            splits.append(Split(uri, "parquet", number, first_row, group.num_rows, documents))
        first_row += group.num_rows
    return Plan(splits, _bare_schema(uri, schema, corpus))


def _bare_schema(uri: str, schema: pa.Schema, corpus: Corpus) -> pa.Schema:
    """Return the schema of the columns besides the text, reduced to their values."""
    fields = {}
    for key, column in corpus.others:
        try:
            fields[column] = bare_field(schema.field(column))
        except TypeError:
            raise InputError(
                f"{key}: {column} in {uri} is of a type that cannot be copied without what else "
                "the file says of it, such as a union or a list view; write it as another"
            ) from None
    return pa.schema([fields[column] for column in corpus.columns])


def _is_string(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return kind in (pa.string(), pa.large_string(), pa.string_view())


def _is_plain(kind: pa.DataType) -> bool:
    return bool(pa.types.is_primitive(kind) or pa.types.is_decimal(kind))


@contextmanager
def open_file(uri: str) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file anywhere; raises InputError if it is not one, or is truncated."""
    place = f"input.path: {uri}"
    with client_errors(place, _DAMAGED):
        raw = FileSystems.open(uri, compression_type=CompressionTypes.UNCOMPRESSED)
    with raw:
        try:
            # Pre-buffering would hold whole row groups.
            file = pq.ParquetFile(raw, pre_buffer=False, buffer_size=_BUFFER_BYTES)
        except (pa.ArrowInvalid, OSError) as error:
            raise blamed(error, place, _DAMAGED) from None
        yield file


def first_records(uri: str, _: str, most: int) -> list[dict[str, Any]]:
    """Return a file's first records, as `sources.first_records` does."""
    with open_file(uri) as file, client_errors(f"input.path: {uri}", _DAMAGED):
        batch = next(file.iter_batches(batch_size=most, use_threads=False), None)
        return [] if batch is None else batch.to_pylist()


def table_in(content: bytes, columns: Sequence[str] | None = None) -> pa.Table:
    """Return the table in a file's bytes, or those of `columns` that it has.

    A thread of `pq.read_table` may release the bytes while the interpreter ends, and abort it.
    """
    return pq.ParquetFile(pa.BufferReader(content)).read(columns, use_threads=False)


def read(split: Split, corpus: Corpus) -> Iterator[Documents]:
    """Yield the documents of a row group, in batches that depend on the file alone."""
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
            try:
                batch = next(batches, None)
            except (pa.ArrowException, OSError) as error:
                place = f"input.path: row group {split.row_group} of {split.uri}"
                problem = "cannot be read: the file is damaged; write it again"
                raise blamed(error, place, problem) from None
            if batch is None:
                return
            yield _checked(split.uri, row, batch, corpus)
            row += len(batch)


def _checked(uri: str, first_row: int, batch: pa.RecordBatch, corpus: Corpus) -> Documents:
    """Reject the null texts, and the records that are not valid UTF-8."""
    texts = batch.column(corpus.text)
    rows = np.arange(first_row, first_row + len(batch), dtype=np.int64)
    reasons = {int(i): "the text is null" for i in np.flatnonzero(texts.is_null())}
    for column in (corpus.text, *corpus.columns):
        for i in _not_utf8(batch.column(column)):
            what = "text" if column == corpus.text else f"column {column!r}"
            reasons.setdefault(i, f"the {what} is not valid UTF-8")
    others = pa.table({name: plain(batch.column(name)) for name in corpus.columns})
    rejects = [Reject(uri, int(rows[i]), reason) for i, reason in sorted(reasons.items())]
    if reasons:
        kept = np.setdiff1d(np.arange(len(batch)), list(reasons))
        rows, texts, others = rows[kept], texts.take(pa.array(kept)), others.take(pa.array(kept))
    return Documents(uri, rows, plain(texts).cast(pa.large_string()), others, rejects)


def _not_utf8(column: pa.Array) -> list[int]:
    """Return the rows of a string column that are not UTF-8; none for a column of another type."""
    if not _is_string(column.type):
        return []
    encoded = pa.types.is_dictionary(column.type)
    raw = (column.dictionary if encoded else column).cast(pa.large_binary())
    try:
        raw.cast(pa.large_string())
    except pa.ArrowInvalid:
        values = column.dictionary_decode().cast(pa.large_binary()) if encoded else raw
        return [i for i, value in enumerate(values) if not _is_utf8(value.as_py() or b"")]
    return []


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True
