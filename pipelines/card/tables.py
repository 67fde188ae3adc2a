"""The check of a release's Parquet files: what a table of the kind is, and nothing besides.

A file must have the columns and types that the kind writes, no other metadata, no bytes outside its
pages, and statistics that are those of its values.
"""

from __future__ import annotations

import base64
import copy
import io
import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from quietcorpus.pipelines.card.mechanism import FileFormat
from quietcorpus.pipelines.card.model import Card
from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.reading.bare import bare_field

_MAGIC, _TAIL = b"PAR1", 8
_SCHEMA = b"ARROW:schema"
_WRITER = re.compile(r"parquet-cpp-arrow version \d+\.\d+\.\d+")
_FRESH = r"^[0-9a-f]{32}$"


def opened(uri: str, content: bytes) -> pq.ParquetFile:
    """Open a Parquet file; raises InputError for another one, and for hidden bytes."""
    try:
        file = pq.ParquetFile(pa.BufferReader(content))
    except (pa.ArrowException, OSError):
        raise InputError(f"{uri}: not a Parquet file") from None
    if not _WRITER.fullmatch(file.metadata.created_by or ""):
        raise InputError(f"{uri}: not written by the Parquet writer of a release")
    if _has_gaps(file.metadata, content):
        raise InputError(f"{uri}: bytes that belong to no page of its columns")
    return file


def _has_gaps(metadata: pq.FileMetaData, content: bytes) -> bool:
    """Tell whether a file has bytes that are neither pages nor what its footer parses to."""
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    chunks = [group.column(n) for group in groups for n in range(group.num_columns)]
    offsets = [
        (min(filter(None, (one.dictionary_page_offset, one.data_page_offset))), one)
        for one in chunks
    ]
    at = len(_MAGIC)
    for start, chunk in sorted(offsets, key=lambda one: one[0]):
        if start != at:
            return True
        at += chunk.total_compressed_size
    again = io.BytesIO()
    metadata.write_metadata_file(again)
    return content[at:] != again.getvalue()[len(_MAGIC) :]


def schema_of(uri: str, file: pq.ParquetFile, expected: FileFormat, card: Card) -> pa.Schema:
    """Return the schema that a table is written with, if it is the kind's; raises InputError.

    Copied columns may have any type that can be copied.
    """
    columns = expected.columns or ()
    stated = [*columns[:1], *card.kept_names, *columns[1:]] if expected.is_data else list(columns)
    found = file.schema_arrow.names
    wrong = set(stated).symmetric_difference(found)
    if wrong:
        names = ", ".join(sorted(wrong))
        raise InputError(f"{uri}: columns that release.json does not account for: {names}")
    if found != stated:
        raise InputError(f"{uri}: its columns are not in order, or one stands twice")
    written = _written_schema(uri, file)
    types = dict(zip(columns, expected.types or (), strict=False))
    if expected.is_data and card.id_column is not None:
        types.pop("id")
    for field in written if expected.types is not None else ():
        copied = field.name not in types
        if field.metadata or not _is_written(field, types.get(field.name), copied=copied):
            raise InputError(
                f"{uri}: the column {field.name} is not of the type that it is written as"
            )
    plain = pa.schema([pa.field(one.name, one.type, one.nullable) for one in written])
    if expected.types is not None and not _as_written(plain).equals(file.schema):
        raise InputError(f"{uri}: its columns are not stored as a release stores them")
    return written


def _is_written(field: pa.Field, kind: pa.DataType | None, *, copied: bool) -> bool:
    if not copied:
        forms = (kind, _with_elements(kind))
        return field.nullable and any(field.type.equals(one, check_metadata=True) for one in forms)
    try:
        bare = bare_field(field)
    except TypeError:
        return False
    # A copy, such as one for a worker, names the items of a list of a fixed size anew (Arrow 25).
    forms = (bare, copy.deepcopy(bare))
    return any(one.equals(field, check_metadata=True) for one in forms)


def _with_elements(kind: Any) -> Any:
    """Return a type of lists as Parquet names their items, as of a table that was read from it."""
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", kind.value_type))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(pa.field("element", kind.value_type), kind.list_size)
    return kind


def _written_schema(uri: str, file: pq.ParquetFile) -> pa.Schema:
    """Return the Arrow schema in a file's metadata, which must have nothing else."""
    found = dict(file.metadata.metadata or {})
    try:
        raw = base64.b64decode(found.pop(_SCHEMA), validate=True)
        schema = pa.ipc.read_schema(pa.py_buffer(raw))
    except (KeyError, ValueError, pa.ArrowException, OSError):
        raise InputError(f"{uri}: its metadata are not those of a release's file") from None
    own = schema.metadata is None and bytes(schema.serialize()) == raw
    if found or not own or file.schema_arrow.metadata is not None:
        raise InputError(f"{uri}: metadata that do not belong to a release's file")
    return schema


def _as_written(schema: pa.Schema) -> pq.ParquetSchema:
    """Return the Parquet schema that our writer makes of a schema."""
    sink = io.BytesIO()
    pq.ParquetWriter(sink, schema).close()
    return pq.ParquetFile(pa.BufferReader(sink.getvalue())).schema


def groups_of(uri: str, file: pq.ParquetFile, expected: FileFormat, card: Card) -> Iterator[Any]:
    """Yield the row groups of a table, each checked for nulls, ids and statistics."""
    for number in range(file.metadata.num_row_groups):
        try:
            table = file.read_row_group(number, use_threads=False)
            table.validate(full=True)
        except (pa.ArrowException, OSError):
            raise InputError(f"{uri}: cannot be read as Parquet") from None
        if expected.types is not None:
            if _misstates(file.metadata.row_group(number), table):
                raise InputError(f"{uri}: its statistics are not those of its values")
            _check_values(uri, table, expected, card)
        yield table


def _check_values(uri: str, table: pa.Table, expected: FileFormat, card: Card) -> None:
    fresh = expected.is_data and card.id_column is None
    for name in expected.columns or ():
        if name == "id" and expected.is_data and not fresh:
            continue
        column = table[name]
        items = pc.list_flatten(column) if pa.types.is_nested(column.type) else column
        if name not in expected.nullable and (column.null_count or items.null_count):
            raise InputError(f"{uri}: the column {name} has an empty value")
        if (
            pa.types.is_floating(items.type)
            and not pc.all(pc.is_finite(items)).as_py()
            and len(items)
        ):
            raise InputError(f"{uri}: the column {name} has a number that is not finite")
    if fresh:
        ids = table["id"]
        if not pc.all(pc.match_substring_regex(ids, _FRESH)).as_py() and len(ids):
            raise InputError(f"{uri}: the column id has a value that is not a fresh id")
        if pc.count_distinct(ids).as_py() != len(ids):
            raise InputError(f"{uri}: the column id has a value twice")


def _misstates(group: pq.RowGroupMetaData, table: pa.Table) -> bool:
    """Tell whether a row group's statistics differ from those that our writer makes of its rows."""
    sink = io.BytesIO()
    pq.write_table(table, sink, len(table) or 1, compression="none", use_dictionary=False)
    written = pq.read_metadata(io.BytesIO(sink.getbuffer())).row_group(0)
    for number in range(group.num_columns):
        given, own = group.column(number).statistics, written.column(number).statistics
        if given is not None and (given.has_distinct_count or own is None or given != own):
            return True
    return False
