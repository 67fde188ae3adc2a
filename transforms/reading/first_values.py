"""The first values of each column of a corpus, read as a release reads them.

A column is read at a time, and at most about 32 MB of it, so that a first look at a corpus needs
little memory whatever its columns hold. Columns that no release compares or takes for texts, such
as lists, are named and not read.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.reading import arrow_files, parquet_files, records
from quietcorpus.transforms.reading.bare import plain
from quietcorpus.transforms.reading.columns import batch_rows, is_plain, is_text, not_utf8
from quietcorpus.transforms.reading.documents import BATCH_BYTES
from quietcorpus.transforms.reading.sources import file_format, files_of
from quietcorpus.transforms.reading.spelling import has_spelling

_ROWS = 64  # of Parquet, that are read at a time: a dictionary may say little of values' sizes


@dataclass(frozen=True)
class FirstValues:
    """The first values of a column.

    Attributes:
        name: its name.
        values: of a bare type, those of strings in UTF-8; None for a column that was not read.
        missing: the number of records that have no value, or one that is not UTF-8.
        fault: the reason why the column cannot be read, if that is so.
    """

    name: str
    values: pa.Array | None
    missing: int = 0
    fault: str | None = None


def first_values(pattern: str, most: int) -> list[FirstValues]:
    """Return the columns of the first file that has records, with at most so many values each.

    Lines of text are the column `text`. Raises InputError if there are no records, and for a file
    that cannot be read.
    """
    uris = [metadata.path for metadata in files_of(pattern)]
    for uri in uris:
        name = file_format(uri)
        read = {"parquet": _of_parquet, "arrow": _of_arrow}.get(name)
        found = read(uri, most) if read else _of_records(uri, name, most)
        if found:
            return found
    raise InputError(f"input.path: {uris[0]} holds no records that can be read")


def _is_looked_at(schema: pa.Schema, name: str) -> bool:
    kind = schema.field(name).type if schema.names.count(name) == 1 else pa.list_(pa.null())
    return is_text(kind) or is_plain(kind) or has_spelling(kind)


def _of_parquet(uri: str, most: int) -> list[FirstValues]:
    with parquet_files.open_file(uri) as file:
        if not file.metadata.num_rows:
            return []
        schema = file.schema_arrow

        def batches(name: str) -> Iterator[pa.RecordBatch]:
            with parquet_files.faults(f"input.path: {uri}"):
                yield from file.iter_batches(_ROWS, columns=[name], use_threads=False)

        return [_of_column(schema, name, batches(name), most) for name in _distinct(schema)]


def _of_arrow(uri: str, most: int) -> list[FirstValues]:
    schema = arrow_files.schema_of(uri)
    found = [
        _of_column(schema, name, arrow_files.batches(uri, [name]), most)
        for name in _distinct(schema)
    ]
    without_records = all(
        one.values is not None and not len(one.values) + one.missing for one in found
    )
    return [] if without_records else found


def _distinct(schema: pa.Schema) -> list[str]:
    return list(dict.fromkeys(schema.names))


def _of_column(
    schema: pa.Schema, name: str, batches: Iterable[pa.RecordBatch], most: int
) -> FirstValues:
    """Gather a column's values from batches that hold it."""
    if not _is_looked_at(schema, name):
        return FirstValues(name, None)
    parts: list[pa.Array] = []
    rows = size = 0
    try:
        for batch in batches:
            wanted = min(most - rows, batch_rows(len(batch), max(1, batch.nbytes)))
            parts.append(batch.column(name).slice(0, wanted))
            rows += len(parts[-1])
            size += parts[-1].nbytes
            if rows >= most or size >= BATCH_BYTES or wanted < len(batch):
                break
    except InputError as error:
        return FirstValues(name, None, fault=str(error))
    return _readable(name, parts, rows)


def _readable(name: str, parts: list[pa.Array], rows: int) -> FirstValues:
    kept = []
    for part in parts:
        values = part.drop_null()
        if is_text(part.type) and (faulty := set(not_utf8(values))):
            values = values.take(pa.array([i for i in range(len(values)) if i not in faulty]))
        kept.append(plain(values))
    found = pa.concat_arrays(kept or [pa.nulls(0)])
    return FirstValues(name, found, rows - len(found))


def _of_records(uri: str, name: str, most: int) -> list[FirstValues]:
    found = records.first_records(uri, name, most, BATCH_BYTES)
    names = dict.fromkeys(itertools.chain.from_iterable(found))
    return [_of_values(name, [record.get(name) for record in found]) for name in names]


def _of_values(name: str, given: list[Any]) -> FirstValues:
    values = [value for value in given if value is not None]
    strings = [value for value in values if isinstance(value, str)]
    values = strings or values  # texts are strings: a record with another value is rejected
    try:
        found = pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeError):
        return FirstValues(name, None)
    if not _is_looked_at(pa.schema([(name, found.type)]), name):
        return FirstValues(name, None)
    return FirstValues(name, found, len(given) - len(values))
