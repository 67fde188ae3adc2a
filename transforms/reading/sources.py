"""A corpus on storage: the plan of its splits, and their reading."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pyarrow as pa
from apache_beam.io.filesystem import BeamIOError, FileMetadata
from apache_beam.io.filesystems import FileSystems

from quietcorpus.transforms.errors import InputError, blamed, client_errors
from quietcorpus.transforms.in_turn import in_turn
from quietcorpus.transforms.reading import arrow_files, parquet_files, records, saved_datasets
from quietcorpus.transforms.reading.documents import (
    Corpus,
    Documents,
    FileState,
    Plan,
    Split,
    missing_column,
)

FORMATS = {
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".jsonl": "json lines",
    ".ndjson": "json lines",
    ".csv": "csv",
    ".txt": "text",
    ".cor": "text",
}
COMPRESSIONS = (".gz", ".zst")
_PLANS: dict[str, Callable[[str, Corpus], Plan]] = {
    "parquet": parquet_files.plan,
    "arrow": arrow_files.plan,
}
_READERS: dict[str, Callable[[Split, Corpus], Iterator[Documents]]] = {
    "parquet": parquet_files.read,
    "arrow": arrow_files.read,
}
_FIRST_RECORDS: dict[str, Callable[[str, str, int], list[dict[str, Any]]]] = {
    "parquet": parquet_files.first_records,
    "arrow": arrow_files.first_records,
}
_WHOLE = (".parquet", ".arrow")  # compressed inside, if at all
_GLOB = re.compile(r"[*?\[]")
_FOOTERS_AT_ONCE = 16


def file_format(uri: str) -> str:
    """Return a file's format by its extension; raises InputError for an unknown one."""
    name = uri.lower()
    for compression in COMPRESSIONS:
        if not name.removesuffix(compression).endswith(_WHOLE):
            name = name.removesuffix(compression)
    for extension, name_of_format in FORMATS.items():
        if name.endswith(extension):
            return name_of_format
    raise InputError(
        f"input.path: {uri} has no known extension; use one of {', '.join(FORMATS)}, "
        f"all but {' and '.join(_WHOLE)} optionally with {' or '.join(COMPRESSIONS)}"
    )


def plan(corpus: Corpus) -> Plan:
    """List the splits and check every file's columns; raises InputError if a check fails."""
    files = [metadata for metadata in _match(corpus.pattern) if not _is_empty(metadata)]
    if not files:
        raise InputError(f"input.path: {corpus.pattern} holds no documents: every file is empty")
    with ThreadPoolExecutor(_FOOTERS_AT_ONCE) as pool:
        # Taken before any file is read: a later comparison with `states` shows every change.
        found = tuple(in_turn(pool, _state, files))
        planned = in_turn(pool, lambda metadata: _plan_file(metadata.path, corpus), files)
        splits: list[Split] = []
        schema: pa.Schema | None = None
        for metadata, part in zip(files, planned, strict=True):
            schema = part.schema if schema is None else schema
            if part.schema != schema:
                raise _other_types(corpus, part.schema, schema, metadata.path, files[0].path)
            splits += (replace(split, number=len(splits)) for split in part.splits)
    if not splits:
        raise InputError(f"input.path: {corpus.pattern} holds no documents")
    return Plan(splits, schema, found)


def _other_types(
    corpus: Corpus, schema: pa.Schema, first: pa.Schema, uri: str, first_uri: str
) -> InputError:
    """Return the error for a file whose columns have other types than the first file's."""
    key = next(k for k, n in corpus.others if schema.field(n) != first.field(n))
    return InputError(
        f"{key}: {uri} has other column types than {first_uri}; write all files with one schema"
    )


def states(corpus: Corpus) -> tuple[FileState, ...]:
    """Return the present states of a corpus's files, as a plan holds them."""
    files = [metadata for metadata in _match(corpus.pattern) if not _is_empty(metadata)]
    with ThreadPoolExecutor(_FOOTERS_AT_ONCE) as pool:
        return tuple(in_turn(pool, _state, files))


def _is_folder(path: str) -> bool:
    return "://" not in path and os.path.isdir(path)


def _is_empty(metadata: FileMetadata) -> bool:
    """Return whether a file holds nothing; an empty one with a frame or a schema is damaged."""
    return metadata.size_in_bytes == 0 and not metadata.path.lower().endswith(
        (*_WHOLE, *COMPRESSIONS)
    )


def _match(pattern: str) -> list[FileMetadata]:
    """List the files of a glob, or of a saved dataset, by name; raises InputError for none."""
    found = _listed(pattern)
    if not found or ([metadata.path for metadata in found] == [pattern] and _is_folder(pattern)):
        named = None if _GLOB.search(pattern) else saved_datasets.files_in(pattern)
        if named is None and found:
            raise InputError(f"input.path: {pattern} is a folder; give a glob, such as {pattern}/*")
        if named is None:
            raise InputError(f"input.path: no file matches {pattern}; check the path or the glob")
        found = [metadata for uri in named for metadata in _listed(uri)]
        if missing := set(named) - {metadata.path for metadata in found}:
            raise InputError(
                f"input.path: {min(missing)} is missing, though the dataset has it; save it again"
            )
    return sorted(found, key=lambda metadata: metadata.path)


def _listed(pattern: str) -> list[FileMetadata]:
    try:
        (result,) = FileSystems.match([pattern])
    except BeamIOError as error:
        problem = "cannot be listed; check the path and the credentials"
        raise blamed(error, f"input.path: {pattern}", problem) from None
    except ValueError as error:
        raise InputError(f"input.path: {pattern} cannot be opened: {error}") from None
    return list(result.metadata_list)


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
        raise InputError(f"{key}: {uri} is plain text and has no column {column!r}; give Parquet")
    columns = records.columns_of(uri, name, [corpus.text, *corpus.columns])
    if columns is not None:
        for key, column in [("input.text", corpus.text), *corpus.others]:
            if column not in columns:
                raise InputError(missing_column(key, column, uri))
    schema = pa.schema([(column, pa.string()) for column in corpus.columns])
    return Plan([Split(uri, name)], schema)


def first_records(pattern: str, most: int) -> list[dict[str, Any]]:
    """Return the first records of a corpus's first file, each by column, as Python's values.

    Lines of text are the column `text`. Raises InputError if there is none.
    """
    files = [metadata.path for metadata in _match(pattern) if not _is_empty(metadata)]
    if not files:
        raise InputError(f"input.path: {pattern} holds no documents: every file is empty")
    name = file_format(files[0])
    found = _FIRST_RECORDS.get(name, records.first_records)(files[0], name, most)
    if not found:
        raise InputError(f"input.path: {files[0]} holds no records that can be read")
    return found


def read(split: Split, corpus: Corpus) -> Iterator[Documents]:
    """Read the documents of a split, in order, in batches that depend on the file alone."""
    if split.format in _READERS:
        return _READERS[split.format](split, corpus)
    return records.read(split.uri, split.format, corpus)
