"""The columns of files with a schema: what is asked of them, and the documents in their rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from quietcorpus.transforms.errors import InputError, cut
from quietcorpus.transforms.reading.bare import bare_field, plain
from quietcorpus.transforms.reading.documents import (
    BATCH_BYTES,
    BATCH_DOCUMENTS,
    Corpus,
    Documents,
    Reject,
    missing_column,
)
from quietcorpus.transforms.reading.spelling import SPELLED, has_spelling

_STRINGS = (pa.string(), pa.large_string(), pa.string_view())
_BINARY = (pa.binary(), pa.large_binary(), pa.binary_view())


def checked_schema(uri: str, schema: pa.Schema, corpus: Corpus) -> pa.Schema:
    """Return the schema of the columns besides the text, reduced to their values.

    Raises InputError for a missing column or a wrong type.
    """
    for key, column in [("input.text", corpus.text), *corpus.others]:
        if not (count := schema.names.count(column)):
            raise InputError(missing_column(key, column, uri, schema.names))
        if count > 1:
            raise InputError(f"{key}: {uri} has {count} columns named {column!r}; rename one")
    if not is_text(kind := schema.field(corpus.text).type):
        raise InputError(
            f"input.text: {corpus.text} in {uri} is of type {kind}, not string; "
            "name the column that holds the text"
        )
    for key, column in corpus.compared:
        kind = schema.field(column).type
        if not (has_spelling(kind) or (key not in SPELLED and is_plain(kind))):
            numbers = "whole numbers" if key in SPELLED else "numbers"
            raise InputError(
                f"{key}: {column} in {uri} is of type {kind}; name a column of strings or {numbers}"
            )
    return _bare_schema(uri, schema, corpus)


def _bare_schema(uri: str, schema: pa.Schema, corpus: Corpus) -> pa.Schema:
    """Return the schema of the columns besides the text, reduced to their values."""
    fields = {}
    for key, column in corpus.others:
        try:
            fields[column] = bare_field(schema.field(column))
        except TypeError:
            raise InputError(
                f"{key}: {column} in {uri} is of a type that cannot be copied without other parts "
                "of the file, such as a union or a list view; write it as another type"
            ) from None
    return pa.schema([fields[column] for column in corpus.columns])


def batch_rows(rows: int, size: int) -> int:
    """Return how many of so many rows of so many bytes are read at a time."""
    return int(np.clip(BATCH_BYTES // max(1, size // rows), 1, BATCH_DOCUMENTS))


def readable(uri: str, first_row: int, batch: pa.RecordBatch, corpus: Corpus) -> Documents:
    """Return the documents of a batch without null texts and records that are not valid UTF-8."""
    texts = batch.column(corpus.text)
    compared = {column for _, column in corpus.compared}
    rows = np.arange(first_row, first_row + len(batch), dtype=np.int64)
    reasons = {int(i): "the text is null" for i in np.flatnonzero(texts.is_null())}
    for column in (corpus.text, *corpus.columns):
        values = batch.column(column)
        # Binary values that are kept, and no more, may hold anything.
        as_text = is_text if column in {corpus.text, *compared} else is_string
        for i in not_utf8(values) if as_text(values.type) else ():
            what = "text" if column == corpus.text else f"column {cut(column)}"
            reasons.setdefault(i, f"the {what} is not valid UTF-8")
    others = pa.table({name: plain(batch.column(name)) for name in corpus.columns})
    rejects = [Reject(uri, int(rows[i]), reason) for i, reason in sorted(reasons.items())]
    if reasons:
        kept = np.setdiff1d(np.arange(len(batch)), list(reasons))
        rows, texts, others = rows[kept], texts.take(pa.array(kept)), others.take(pa.array(kept))
    return Documents(uri, rows, plain(texts).cast(pa.large_string()), others, rejects)


def is_string(kind: pa.DataType) -> bool:
    """Return whether values of a type are strings, in whatever form."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return kind in _STRINGS


def is_text(kind: pa.DataType) -> bool:
    """Return whether values of a type may be texts: some writers do not mark strings as such.

    A column of nulls alone is of the type null, whatever the others of its name hold.
    """
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return kind in _STRINGS or kind in _BINARY or pa.types.is_null(kind)


def is_plain(kind: pa.DataType) -> bool:
    """Return whether values of a type are numbers, times or truth values."""
    return bool(pa.types.is_primitive(kind) or pa.types.is_decimal(kind))


def not_utf8(column: pa.Array) -> list[int]:
    """Return the rows of a column of strings or bytes that are not UTF-8."""
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
