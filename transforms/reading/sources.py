"""A corpus on storage: the plan of its splits, and their reading."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pyarrow as pa
from apache_beam.io.filesystem import FileMetadata
from apache_beam.io.filesystems import FileSystems

from ..errors import InputError, StageError, client_errors, shown
from ..threads import in_turn
from . import arrow_files, parquet_files, records
from .bare import common_field
from .documents import (
    Corpus,
    Documents,
    FileState,
    Plan,
    Split,
    missing_column,
)
from .listing import (
    COMPRESSIONS,
    WHOLE,
    Listing,
    file_format,
    listed,
)

_LOGGER = logging.getLogger("quietcorpus.reading")
_PLANS: dict[str, Callable[[str, Corpus], Plan]] = {
    "parquet": parquet_files.plan,
    "arrow": arrow_files.plan,
}
_READERS: dict[str, Callable[[Split, Corpus], Iterator[Documents]]] = {
    "parquet": parquet_files.read,
    "arrow": arrow_files.read,
}
_FOOTERS_AT_ONCE = 16
_FIRST_RECORDS, _SEARCHED_RECORDS = 1000, 1_000_000
"""Of each file, and of all together, for the keys of JSON objects: a key that these records lack
is taken for a misspelled one."""


def plan(corpus: Corpus) -> Plan:
    """List the splits and check every file's columns; raises InputError if a check fails."""
    files, skipped = files_of(corpus.pattern)
    if skipped:
        _LOGGER.info(
            "input.path: %d of %d files that match %s are hidden or markers, and are not read",
            skipped,
            skipped + len(files),
            corpus.pattern,
        )
    with ThreadPoolExecutor(_FOOTERS_AT_ONCE) as pool:
        # Taken before any file is read: a later comparison with `states` shows every change.
        found = tuple(in_turn(pool, _state, files))
        planned = list(in_turn(pool, lambda one: _plan_file(one.path, corpus), files))
    _check_keys(corpus, [metadata.path for metadata in files])
    planned = [part for part in planned if part.splits]
    if len({part.schema for part in planned}) > 1:
        planned = [part for part in planned if not _is_without_rows(part)]
    if not planned:
        raise InputError(f"input.path: {corpus.pattern} holds no documents")
    schema, apart = _common_schema(corpus, planned)
    of_all = pa.schema([field for field in schema if field.name not in apart]).serialize()
    splits: list[Split] = []
    for part in planned:
        types = None if part.schema == schema else of_all.to_pybytes()
        for split in part.splits:
            splits.append(replace(split, number=len(splits), types=types))
    return Plan(splits, schema, found)


def _is_without_rows(part: Plan) -> bool:
    (first, *_) = part.splits
    return first.format == "arrow" and arrow_files.is_without_rows(first.uri)


def _common_schema(corpus: Corpus, planned: Sequence[Plan]) -> tuple[pa.Schema, set[str]]:
    """Return the columns' types in all files, and the columns that are read as each file has them.

    These are compared and not kept, and have types without a common one: their values are spelled.
    Raises InputError for such types of a column that is kept.
    """
    fields: dict[str, pa.Field] = {}
    apart: set[str] = set()
    for key, name in corpus.others:
        of_field = first = planned[0]
        for part in planned:
            one, other = fields.get(name, part.schema.field(name)), part.schema.field(name)
            try:
                fields[name] = common_field(one, other)
            except TypeError:
                if name not in corpus.keep:
                    apart.add(name)
                    continue
                raise _other_type(key, name, other.type, part, one.type, of_field) from None
            of_field = of_field if fields[name].type.equals(one.type) else part
        if pa.types.is_null(fields[name].type) and key != "input.keep":
            raise InputError(
                f"{key}: {name} in {first.splits[0].uri} is of type null, and has no value there, "
                "nor in other files; name another column"
            )
    return pa.schema([fields[name] for name in corpus.columns]), apart


def _other_type(
    key: str, name: str, kind: pa.DataType, part: Plan, first: pa.DataType, of_first: Plan
) -> InputError:
    """Return the error for a file whose column has a type of another meaning than others' have."""
    return InputError(
        f"{key}: {name} in {part.splits[0].uri} is of type {kind}, and in {of_first.splits[0].uri} "
        f"of type {first}; write it in all files as one type, whose values are the same in each"
    )


def _check_keys(corpus: Corpus, uris: Sequence[str]) -> None:
    """Raise InputError if no JSON object has a column, since it is misspelled then.

    An object without the key has a null there, and keys may come late, or not in every file.
    """
    if any(file_format(uri) != "json lines" for uri in uris):
        return
    missing, some = {corpus.text, *corpus.columns}, False
    searched = max(_FIRST_RECORDS, _SEARCHED_RECORDS // len(uris))
    for most in dict.fromkeys((_FIRST_RECORDS, searched)):
        for uri in uris:
            found = records.keys_of(uri, missing, most)
            some = some or found is not None
            missing -= found or set()
            if not missing:
                return
        if not some:
            return  # none of the records can be read: each is rejected
    for key, column in [("input.text", corpus.text), *corpus.others]:
        if column in missing:
            raise InputError(missing_column(key, column, uris[0]))


def states(corpus: Corpus) -> tuple[FileState, ...]:
    """Return the present states of a corpus's files, as a plan holds them."""
    files = files_of(corpus.pattern).files
    with ThreadPoolExecutor(_FOOTERS_AT_ONCE) as pool:
        return tuple(in_turn(pool, _state, files))


def files_of(pattern: str) -> Listing:
    """List the files of a corpus that are not empty; one with a frame is not, whole or damaged.

    Raises InputError if no file is left, and for a compressed one of no byte, which the
    decompressors take for whole.
    """
    found = listed(pattern)
    for one in found.files:
        if not one.size_in_bytes and one.path.lower().endswith(COMPRESSIONS):
            raise InputError(f"input.path: {one.path} is truncated to no byte; write it again")
    files = [one for one in found.files if one.size_in_bytes or one.path.lower().endswith(WHOLE)]
    if not files:
        raise InputError(f"input.path: {pattern} holds no documents: every file is empty")
    return Listing(files, found.skipped)


def _state(metadata: FileMetadata) -> FileState:
    with client_errors(
        f"input.path: {metadata.path}", "cannot be read; check the path and the credentials"
    ):
        if "://" in metadata.path:
            checksum = str(FileSystems.checksum(metadata.path))
        else:  # copying tools set the time of change back; the kernel alone sets this one
            status = os.stat(metadata.path)
            checksum = f"{status.st_ino}-{status.st_ctime_ns}"
    return FileState(
        metadata.path, metadata.size_in_bytes, metadata.last_updated_in_seconds, checksum
    )


def _plan_file(uri: str, corpus: Corpus) -> Plan:
    name = file_format(uri)
    if name in _PLANS:
        return _PLANS[name](uri, corpus)
    if name == "text" and corpus.others:
        key, column = corpus.others[0]
        raise InputError(
            f"{key}: {uri} is plain text and has no column {shown(column)}; give Parquet"
        )
    if name == "csv":
        columns = records.columns_of(uri, corpus.escape)
        for key, column in [("input.text", corpus.text), *corpus.others]:
            if column not in columns:
                raise InputError(missing_column(key, column, uri))
    schema = pa.schema([(column, pa.string()) for column in corpus.columns])
    return Plan([Split(uri, name)], schema)


def require_unchanged(corpus: Corpus, planned: Plan) -> None:
    """Raise StageError unless a corpus's files are as they were planned."""
    if states(corpus) != planned.files:
        raise StageError(
            f"files of {corpus.pattern} were changed, added or deleted while they were read; run "
            "again once nothing writes there"
        )


def batches(corpus: Corpus) -> Iterator[Documents]:
    """Read a corpus from end to end; raises StageError at the end if its files have changed."""
    planned = plan(corpus)
    for split in planned.splits:
        yield from read(split, corpus)
    require_unchanged(corpus, planned)


def read(split: Split, corpus: Corpus) -> Iterator[Documents]:
    """Read the documents of a split, in order, in batches that depend on the file alone."""
    reader = _READERS.get(split.format)
    found = reader(split, corpus) if reader else records.read(split.uri, split.format, corpus)
    if split.types is None:
        return found
    return _with_types(found, pa.ipc.read_schema(pa.py_buffer(split.types)))


def _with_types(found: Iterator[Documents], types: pa.Schema) -> Iterator[Documents]:
    """Yield documents whose columns have the types that they have in the whole corpus."""
    for documents in found:
        columns = documents.columns
        for field in types:
            try:
                column = columns[field.name].cast(field.type)
            except pa.ArrowInvalid:
                raise InputError(
                    f"input.path: {field.name} in {documents.source} has values beyond its type in "
                    f"other files, {field.type}; write it in all files as one type"
                ) from None
            columns = columns.set_column(columns.column_names.index(field.name), field, column)
        yield replace(documents, columns=columns)
