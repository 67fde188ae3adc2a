"""Reading Parquet, a row group at a time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from apache_beam.io.filesystem import BeamIOError, CompressionTypes
from apache_beam.io.filesystems import FileSystems

from transforms.documents import (
    BATCH_BYTES,
    BATCH_DOCUMENTS,
    Corpus,
    Documents,
    Plan,
    Reject,
    Split,
    missing_column,
)
from transforms.errors import InputError


def plan(uri: str, corpus: Corpus) -> Plan:
    """One split a row group; raises InputError for a missing column or one of another type."""
    with open_file(uri) as file:
        schema, metadata = file.schema_arrow, file.metadata
    for key, column in [("text", corpus.text), *corpus.others]:
        if column not in schema.names:
            raise InputError(missing_column(key, column, uri, schema.names))
    kind = schema.field(corpus.text).type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or _is_view(kind)):
        raise InputError(
            f"input.text: {corpus.text} in {uri} is of type {kind}, not string; "
            "name the column that holds the text"
        )
    splits, first_row = [], 0
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        if group.num_rows:
            size = max(1, group.total_byte_size // group.num_rows)
            documents = int(np.clip(BATCH_BYTES // size, 1, BATCH_DOCUMENTS))
            splits.append(Split(uri, "parquet", number, first_row, group.num_rows, documents))
        first_row += group.num_rows
    return Plan(
        splits, pa.schema([schema.field(column) for column in corpus.columns]).remove_metadata()
    )


def _is_view(kind: pa.DataType) -> bool:
    return bool(kind == pa.string_view())


def open_file(uri: str) -> pq.ParquetFile:
    """Open a Parquet file anywhere; raises InputError if it is not one, or is truncated."""
    try:
        raw = FileSystems.open(uri, compression_type=CompressionTypes.UNCOMPRESSED)
        return pq.ParquetFile(raw)
    except (pa.ArrowInvalid, OSError, BeamIOError):
        raise InputError(
            f"input.path: {uri} is not a readable Parquet file: it is truncated, damaged or of "
            "another format; write it again"
        ) from None


def read(split: Split, corpus: Corpus) -> Iterator[Documents]:
    """The documents of a row group, in batches that depend on the file alone."""
    row = split.first_row
    columns = list(dict.fromkeys([corpus.text, *corpus.columns]))
    with open_file(split.uri) as file:
        batches = file.iter_batches(
            batch_size=split.batch_documents, row_groups=[split.row_group], columns=columns
        )
        while True:
            try:
                batch = next(batches, None)
            except (pa.ArrowException, OSError):
                raise InputError(
                    f"input.path: row group {split.row_group} of {split.uri} cannot be read: the "
                    "file is damaged; write it again"
                ) from None
            if batch is None:
                return
            yield _checked(split.uri, row, batch, corpus)
            row += len(batch)


def _checked(uri: str, first_row: int, batch: pa.RecordBatch, corpus: Corpus) -> Documents:
    """Set apart the null texts and those that are not valid UTF-8."""
    texts = batch.column(corpus.text)
    if pa.types.is_dictionary(texts.type):
        texts = texts.dictionary_decode()
    texts = texts.cast(pa.large_binary())
    rows = np.arange(first_row, first_row + len(batch), dtype=np.int64)
    reasons = {int(i): "the text is null" for i in np.flatnonzero(texts.is_null())}
    try:
        texts.cast(pa.large_string())
    except pa.ArrowInvalid:
        for i, raw in enumerate(texts):
            if i not in reasons and not _is_utf8(raw.as_py()):
                reasons[i] = "the text is not valid UTF-8"
    others = pa.Table.from_batches([batch]).select(corpus.columns)
    if reasons:
        kept = np.setdiff1d(np.arange(len(batch)), list(reasons))
        texts, others = texts.take(pa.array(kept)), others.take(pa.array(kept))
        rejects = [Reject(uri, int(rows[i]), reason) for i, reason in sorted(reasons.items())]
        return Documents(uri, rows[kept], texts.cast(pa.large_string()), others, rejects)
    return Documents(uri, rows, texts.cast(pa.large_string()), others)


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True
