"""The files of a run besides its data files: tables that precede documents, and the list of all.

The list lies in the staging area, and tells the launcher what a pipeline wrote.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from itertools import chain
from typing import Any

import apache_beam as beam
import orjson
import pyarrow as pa
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems
from apache_beam.transforms.window import GlobalWindows

from quietcorpus.mechanisms.keystream import ReleaseKey

from .errors import StageError, client_errors, redacted
from .reading.parquet_files import table_in
from .sealed import seal_pieces, unseal, wide
from .shards import Tally, Written, staged_content, write_tables
from .vocabulary import KeySource

_NAME = "manifest.json"
_FILE, _TALLY = b"file ", b"tally "
_AT_ONCE = 500
_PLAIN = CompressionTypes.UNCOMPRESSED


class WriteRunFiles(beam.PTransform):
    """A PTransform that gathers `Written` files and `Tally` values into the list of a run's files.

    The list is sealed, because the noisy size of a private vocabulary is not released yet. Its
    length tells nothing of a count.
    """

    def __init__(self, staging: str, key: KeySource) -> None:
        super().__init__()
        self._staging = staging
        self._key = key

    def expand(self, parts: tuple[beam.PCollection, ...]) -> beam.PCollection:
        entries = [
            part | f"entries {number}" >> beam.ParDo(_Pack()).with_output_types(bytes)
            for number, part in enumerate(parts)
        ]
        return (
            entries
            | beam.Flatten()
            | beam.CombineGlobally(beam.combiners.ToListCombineFn()).without_defaults()
            | beam.ParDo(_Write(f"{self._staging}/{_NAME}", self._key))
        )


def _entry(found: Written | Tally) -> bytes:
    """Return a file or a tally as JSON: as objects, all of them would take ten times the memory."""
    if isinstance(found, Tally):
        return _TALLY + orjson.dumps(found.encoded())
    return _FILE + orjson.dumps(asdict(found) | {"rows": wide(found.rows)})


class _Pack(beam.DoFn):
    """A DoFn that compresses entries, many at a time: Beam holds an element several times."""

    def start_bundle(self) -> None:
        self._entries: list[bytes] = []

    @redacted
    def process(self, found: Written | Tally) -> Iterator[bytes]:
        self._entries.append(_entry(found))
        if len(self._entries) == _AT_ONCE:
            yield self._packed()

    @redacted
    def finish_bundle(self) -> Iterator[Any]:
        if self._entries:
            yield GlobalWindows.windowed_value(self._packed())

    def _packed(self) -> bytes:
        packed = zlib.compress(b"\n".join(self._entries))
        self._entries.clear()
        return packed


def _unpacked(packed: Iterable[bytes], sort: bytes) -> Iterator[bytes]:
    """Yield the entries of a sort as JSON."""
    for some in packed:
        for entry in zlib.decompress(some).split(b"\n"):
            if entry.startswith(sort):
                yield entry.removeprefix(sort)


class _Write(beam.DoFn):
    def __init__(self, uri: str, key: KeySource) -> None:
        self._uri = uri
        self._key = key

    @redacted
    def process(self, packed: list[bytes]) -> Iterator[str]:
        told = (Tally.decoded(orjson.loads(one)) for one in _unpacked(packed, _TALLY))
        tally = orjson.dumps(Tally.total(told).encoded())
        files = (b"\n" + file for file in _unpacked(packed, _FILE))
        # Line by line: all of them, too, would be held beside what they become.
        sealed = seal_pieces(chain([tally], files), self._uri, self._key())
        with FileSystems.create(self._uri, compression_type=_PLAIN) as stream:
            stream.write(sealed)
        yield self._uri


def read_run_files(staging: str, key: ReleaseKey) -> tuple[list[Written], Tally]:
    """Read the list: the files that the pipeline wrote, by path, and the tally of what it read.

    Raises StageError if there is none.
    """
    uri = f"{staging}/{_NAME}"
    tally, *files = unseal(_content(uri), uri, key).split(b"\n")
    # One by one, or dictionaries of all of them would be held beside the files.
    written = (_file(orjson.loads(file)) for file in files)
    return sorted(written, key=lambda file: file.path), Tally.decoded(orjson.loads(tally))


def _content(uri: str) -> bytes:
    lost = (
        "is missing: the engine lost every part of the corpus, or the step that lists what it "
        "wrote; run again, on another engine if that repeats"
    )
    with (
        client_errors(uri, lost, StageError),
        FileSystems.open(uri, compression_type=_PLAIN) as stream,
    ):
        return bytes(stream.read())


def _file(fields: dict[str, Any]) -> Written:
    return Written(**fields | {"rows": int(fields["rows"])})


Tables = Iterator[tuple[str, pa.Schema, Iterable[pa.Table]]]
"""Tables as their row groups, each after its path in the release and its schema."""


def whole(path: str, table: pa.Table) -> tuple[str, pa.Schema, list[pa.Table]]:
    """Return a table that is one row group."""
    return path, table.schema, [table]


class WriteTables(beam.DoFn):
    """A DoFn that writes the tables that a function makes of an element and any side input."""

    def __init__(self, staging: str, key: KeySource, tables: Callable[[Any, Any], Tables]) -> None:
        self._staging = staging
        self._key = key
        self._tables = tables

    @redacted
    def process(self, element: Any, side: Any = None) -> Iterator[Written]:
        for path, schema, groups in self._tables(element, side):
            yield write_tables(groups, schema, path, self._staging, self._key())


def staged_table(file: Written, key: ReleaseKey) -> pa.Table:
    """Read the table of a staged Parquet file."""
    return table_in(b"".join(staged_content(file, key)))
