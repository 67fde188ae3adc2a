"""The columns of files with a schema: what is asked of them, and the documents in their rows."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ..errors import InputError, cut
from .bare import bare_field, holds, numbered, plain, unchecked
from .documents import (
    BATCH_BYTES,
    BATCH_DOCUMENTS,
    Corpus,
    Documents,
    Reject,
    missing_column,
)
from .identifiers import SPELLED, has_spelling

_STRINGS = (pa.string(), pa.large_string(), pa.string_view())
_BINARY = (pa.binary(), pa.large_binary(), pa.binary_view())
_DAY = 86_400_000  # milliseconds
_DIGITS = 38  # of a decimal; Polars and Spark read no more, and DuckDB rounds them
_NOT_UTF8 = "is not valid UTF-8"
UNREAD = (
    f"has a type, an encoding or a compression that Arrow {pa.__version__} does not read; write it "
    "again with another"
)
NO_LIST = "has a null in place of a list of a fixed size"
_TWICE = "has a map with a key twice"


def checked_schema(
    uri: str, schema: pa.Schema, corpus: Corpus, wide: Collection[str] = ()
) -> pa.Schema:
    """Return the schema of the columns besides the text, reduced to their values.

    `wide` are the columns whose integers are too wide for Arrow. Raises InputError for a missing
    column or a wrong type. Columns that no key names may be of any type.
    """
    for key, column in [("input.text", corpus.text), *corpus.others]:
        if not (count := schema.names.count(column)):
            raise InputError(missing_column(key, column, uri, schema.names))
        if count > 1:
            raise InputError(f"{key}: {uri} has {count} columns named {column!r}; rename one")
        if column in wide:
            raise _unknown_type(key, column, uri, "128-bit integer")
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
        except TypeError as error:
            raise _unknown_type(key, column, uri, str(error)) from None
        if column in corpus.keep and (kind := _refused_by_parquet(fields[column].type)):
            raise _unknown_type(key, column, uri, kind)
    return pa.schema([fields[column] for column in corpus.columns])


def _unknown_type(key: str, column: str, uri: str, kind: str) -> InputError:
    return InputError(
        f"{key}: {column} in {uri} is of, or holds, the type {kind}, which not all readers of "
        "Parquet know; write it as another type, such as string"
    )


@cache
def _refused_by_parquet(kind: pa.DataType) -> str | None:
    """Return the name of a type that cannot be written to Parquet and read by all; else None."""
    if holds(kind, _is_long_decimal):
        return f"decimal of more than {_DIGITS} digits"
    sink = pa.BufferOutputStream()
    try:
        pq.write_table(pa.table({"x": pa.nulls(0, kind)}), sink)
        pq.ParquetFile(pa.BufferReader(sink.getvalue())).read(use_threads=False)
    except (pa.ArrowException, OSError):
        return str(kind).split("<")[0]
    return None


def _is_long_decimal(kind: pa.DataType) -> bool:
    return bool(pa.types.is_decimal(kind)) and kind.precision > _DIGITS


def batch_rows(rows: int, size: int) -> int:
    """Return how many of `rows` rows, of `size` bytes in all, are read at a time."""
    return int(np.clip(BATCH_BYTES // max(1, size // rows), 1, BATCH_DOCUMENTS))


def readable(
    uri: str,
    first_row: int,
    batch: pa.RecordBatch,
    corpus: Corpus,
    wrong: Mapping[int, str] | None = None,
) -> Documents:
    """Return the documents of a batch without null texts and records that cannot be read.

    Args:
        uri: the file.
        first_row: the number of the batch's first record in the file.
        batch: the columns.
        corpus: names them.
        wrong: the rows of the batch that are known to be unreadable, each with the reason.
    """
    columns = {name: plain(batch.column(name)) for name in (corpus.text, *corpus.columns)}
    texts = columns[corpus.text]
    rows = np.arange(first_row, first_row + len(batch), dtype=np.int64)
    reasons = {int(i): "the text is null" for i in np.flatnonzero(texts.is_null())}
    as_text = {corpus.text, *(name for _, name in corpus.compared)}
    for name, column in columns.items():
        what = "text" if name == corpus.text else f"column {cut(name)}"
        for i, problem in _unreadable(column, name in as_text):
            reasons.setdefault(i, f"the {what} {problem}")
    for i, reason in (wrong or {}).items():
        reasons.setdefault(i, reason)
    others = pa.table({name: columns[name] for name in corpus.columns})
    rejects = [Reject(uri, int(rows[i]), reason) for i, reason in sorted(reasons.items())]
    if reasons:
        kept = np.setdiff1d(np.arange(len(batch)), list(reasons))
        rows, texts, others = rows[kept], texts.take(pa.array(kept)), others.take(pa.array(kept))
    for number, name in enumerate(others.column_names):
        if not _has_plain_nans(others[name]):
            others = others.set_column(number, others.field(name), _with_plain_nans(others[name]))
    return Documents(uri, rows, texts.cast(pa.large_string()), others, rejects)


def is_as_read(column: pa.ChunkedArray) -> bool:
    """Return whether a run that reads the values of a bare column copies them all as they are."""
    unreadable = any(True for chunk in column.chunks for _ in _unreadable(chunk, False))
    return not unreadable and _has_plain_nans(column)


def _has_plain_nans(column: pa.ChunkedArray) -> bool:
    """Return whether no NaN, at any depth, has other bits than Python's: they may hold anything."""
    if not holds(column.type, pa.types.is_floating):
        return True
    found = (part for chunk in column.chunks for part, _ in parts(chunk))
    return all(map(_are_plain, (part for part in found if pa.types.is_floating(part.type))))


def _are_plain(values: pa.FloatingPointArray) -> bool:
    bits = {16: pa.uint16(), 32: pa.uint32(), 64: pa.uint64()}[values.type.bit_width]
    ours = pa.array([math.nan], values.type).view(bits)[0]
    others = pc.and_(pc.is_nan(values), pc.not_equal(values.view(bits), ours))
    return not pc.any(others).as_py()


def _with_plain_nans(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    if pa.types.is_floating(kind):
        return pc.if_else(pc.is_nan(column), pa.scalar(math.nan, kind), column)
    values = numbered(column)
    plain_values = list(map(_with_nan, values.to_pylist()))
    return pa.chunked_array([pa.array(plain_values, values.type).view(kind)])


def _with_nan(value: Any) -> Any:
    """Return a value of a nest with Python's NaN for each other."""
    if isinstance(value, float):
        return math.nan if math.isnan(value) else value
    if isinstance(value, dict):
        return {name: _with_nan(own) for name, own in value.items()}
    return type(value)(map(_with_nan, value)) if isinstance(value, list | tuple) else value


def is_string(kind: pa.DataType) -> bool:
    """Return whether values of a type are strings, in whatever form."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return kind in _STRINGS


def is_text(kind: pa.DataType) -> bool:
    """Return whether values of a type may be texts: some writers do not mark strings as such.

    A column of nulls alone has the type null, whatever the others of its name hold.
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


def _unreadable(column: pa.Array, as_text: bool) -> Iterator[tuple[int, str]]:
    """Yield the rows of a plain column that hold what readers of Parquet refuse, with the reason.

    Bytes must be UTF-8 in a column that is read as text, and may be any in one that is only kept.

    Such are strings that are not UTF-8, values beyond their type's range, nulls in place of lists
    of a fixed size, and maps with a key twice, at any depth.
    """
    if as_text and is_text(column.type):
        yield from ((row, _NOT_UTF8) for row in not_utf8(column))
        return
    if not holds(column.type, _has_further_rules):
        try:
            column.validate(full=True)
        except pa.ArrowInvalid:
            pass
        else:
            return
    for part, rows in parts(column):
        if pa.types.is_fixed_size_list(part.type) and part.null_count:
            wrong = part.is_null().to_numpy(zero_copy_only=False)
            yield from ((row, NO_LIST) for row in rows[wrong].tolist())
        elif pa.types.is_map(part.type):
            yield from ((row, _TWICE) for row in rows[_repeats_a_key(part)].tolist())
        elif not pa.types.is_nested(part.type):
            text = is_string(part.type)
            problem = _NOT_UTF8 if text else "has a value beyond its type's range"
            yield from ((row, problem) for row in rows[_invalid(part)].tolist())


def _has_further_rules(kind: pa.DataType) -> bool:
    """Return whether a valid value of a type may be one that readers of Parquet refuse."""
    return _is_narrower_in_parquet(kind) or pa.types.is_map(kind)


def _is_narrower_in_parquet(kind: pa.DataType) -> bool:
    """Return whether not every valid value of a type can be written to Parquet and read."""
    types = pa.types
    seconds = types.is_timestamp(kind) and kind.unit == "s"
    return bool(types.is_fixed_size_list(kind) or types.is_date64(kind) or seconds)


def parts(
    column: pa.Array, rows: npt.NDArray[np.int64] | None = None
) -> Iterator[tuple[pa.Array, npt.NDArray[np.int64]]]:
    """Yield a column and the columns that it is made of, each with the row of every value.

    Values below a null, or between lists, which no row has, are left out.
    """
    kind, types = column.type, pa.types
    rows = np.arange(len(column)) if rows is None else rows
    yield column, rows
    if types.is_struct(kind):
        for inner in column.flatten():
            yield from parts(inner, rows)
    elif types.is_nested(kind):
        if types.is_map(kind):  # Arrow 25 ends the process over a map without its view as a list
            entries = pa.struct([kind.key_field, kind.item_field])
            column = column.view(pa.list_(pa.field("entries", entries, nullable=False)))
        there = np.flatnonzero(column.is_valid())
        column = column.take(pa.array(there))
        parents = pc.list_parent_indices(column).to_numpy()
        yield from parts(column.flatten(), rows[there][parents])


def _repeats_a_key(maps: pa.MapArray) -> npt.NDArray[np.bool_]:
    """Return which maps have a key twice, bool (n,): DuckDB reads no table with such a map."""
    wrong = np.zeros(len(maps), bool)
    _, _, (keys, of_maps), *_ = parts(maps)  # the entries come before their keys
    keys = unchecked(keys)
    if pa.types.is_nested(keys.type) or pa.types.is_float16(keys.type):
        keys = pa.array(list(map(repr, keys.to_pylist())))
    numbers = keys.dictionary_encode().indices.to_numpy().astype(np.int64)
    order = np.lexsort((numbers, of_maps))
    again = (np.diff(numbers[order]) == 0) & (np.diff(of_maps[order]) == 0)
    wrong[of_maps[order][1:][again]] = True
    return wrong


def _invalid(values: pa.Array) -> npt.NDArray[np.bool_]:
    """Return which values are none of their type, bool (n,); the type does not nest others."""
    wrong = np.zeros(len(values), bool)
    if _is_narrower_in_parquet(values.type):
        days = pa.types.is_date64(values.type)  # of 32 bits in Parquet; seconds are milliseconds
        most = ((1 << 31) - 1) * _DAY if days else ((1 << 63) - 1) // 1000
        numbers = values.view(pa.int64()).fill_null(0).to_numpy()
        wrong |= (numbers > most) | (numbers < (-most - _DAY if days else -most))
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:
        wrong |= [_is_invalid(values.slice(i, 1)) for i in range(len(values))]
    return wrong


def _is_invalid(value: pa.Array) -> bool:
    try:
        value.validate(full=True)
    except pa.ArrowInvalid:
        return True
    return False
