"""A reader of Arrow's own files and streams, which Hugging Face datasets keep on disk.

Such a file is one split: a stream says nowhere where its record batches begin.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from ..errors import InputError, blamed, client_errors
from .bare import OF_FOOTER, OF_MESSAGE, as_bytes, unchecked
from .columns import UNREAD, batch_rows, checked_schema, readable
from .documents import Corpus, Documents, Plan, Split

_MAGIC = b"ARROW1"  # of a file; a stream has none
_TAIL = 4 + len(_MAGIC)  # the length of the footer, and the end
_CONTINUES = b"\xff\xff\xff\xff"  # before every message since Arrow 0.15
_END_OF_STREAM = b"\0\0\0\0"
# Names that are not UTF-8, and lengths beyond all memory, are damage as well.
_FAILURES = (pa.ArrowException, OSError, UnicodeError, MemoryError)
_DAMAGED = (
    "is not a readable Arrow file: it is truncated, damaged or of another format; write it again"
)


def plan(uri: str, corpus: Corpus) -> Plan:
    """Plan one split for a file; raises InputError for a missing column or a wrong type."""

    def columns(source: pa.NativeFile, wide: Sequence[str]) -> Iterator[pa.Schema]:
        # the names in it may be damaged, too
        yield checked_schema(uri, _schema(source), corpus, wide)

    try:
        (schema,) = _guarded(uri, columns)
        return Plan([Split(uri, "arrow")], schema)
    except InputError:
        if is_without_rows(uri):  # and so an empty table, which may have lost its columns' types
            return Plan([], pa.schema([]))
        raise


def read(split: Split, corpus: Corpus) -> Iterator[Documents]:
    """Yield the documents of a file, in batches that depend on the file alone."""
    columns = list(dict.fromkeys([corpus.text, *corpus.columns]))
    row = 0
    for batch in batches(split.uri, columns):
        size = batch_rows(len(batch), batch.nbytes)
        for start in range(0, len(batch), size):
            part = batch.slice(start, size)
            yield readable(split.uri, row, part, corpus)
            row += len(part)


def schema_of(uri: str) -> tuple[pa.Schema, Sequence[str]]:
    """Return a file's schema, and the columns whose integers are too wide for Arrow.

    Raises InputError if it cannot be read.
    """

    def schemas(
        source: pa.NativeFile, wide: Sequence[str]
    ) -> Iterator[tuple[pa.Schema, Sequence[str]]]:
        schema = _schema(source)
        list(schema.names)  # they may be damaged, too
        yield schema, wide

    ((schema, wide),) = _guarded(uri, schemas)
    return schema, wide


def is_without_rows(uri: str) -> bool:
    """Return whether a file holds no record."""
    return next(_guarded(uri, lambda source, _: _record_batches(source, [])), None) is None


def batches(uri: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the record batches that have rows, with these columns alone, as their writer cut them.

    Raises InputError for damage, and for a value of the columns that lies outside of its buffers.
    """
    return _guarded(uri, lambda source, _: map(_validated, _record_batches(source, columns)))


def _guarded(
    uri: str, parse: Callable[[pa.NativeFile, Sequence[str]], Iterator[Any]]
) -> Iterator[Any]:
    """Yield what is parsed of a file anywhere; raises InputError if that fails.

    `parse` also takes the columns with integers of 128 bits, which are read as bytes.
    """
    place = f"input.path: {uri}"
    with client_errors(place, _DAMAGED):
        raw = FileSystems.open(uri, compression_type=CompressionTypes.UNCOMPRESSED)
    with raw:
        try:
            try:
                yield from parse(pa.PythonFile(raw, "r"), ())
            except pa.ArrowNotImplementedError:
                changed, wide = _with_wide_integers_as_bytes(raw)
                if not wide:
                    raise
                yield from parse(pa.PythonFile(changed, "r"), wide)
        except _FAILURES as error:
            unread = isinstance(error, pa.ArrowNotImplementedError)
            raise blamed(error, place, UNREAD if unread else _DAMAGED) from None


def _with_wide_integers_as_bytes(raw: Any) -> tuple[Any, list[str]]:
    """Return a file whose schema has no integer of 128 bits, and the names of those columns."""
    raw.seek(0)
    head = raw.read(8)
    if head.startswith(_MAGIC):
        raw.seek(-_TAIL, os.SEEK_END)
        (size,) = struct.unpack_from("<i", raw.read(_TAIL))
        start = raw.seek(-_TAIL - size, os.SEEK_END)
    else:
        start = 8 if head.startswith(_CONTINUES) else 4
        (size,) = struct.unpack_from("<i", head, start - 4)
        raw.seek(start)
    try:
        schema = OF_FOOTER if head.startswith(_MAGIC) else OF_MESSAGE
        changed, wide = as_bytes(raw.read(size), schema)
    except (struct.error, IndexError):
        raise pa.ArrowInvalid("the schema is damaged") from None
    raw.seek(0)
    return _Changed(raw, start, changed), wide


class _Changed:
    """A binary file, some bytes of which are others."""

    def __init__(self, raw: Any, start: int, content: bytes) -> None:
        self._raw, self._start, self._content = raw, start, content
        self.closed = False

    def read(self, size: int = -1) -> bytes:
        place = self._raw.tell()
        read = bytearray(self._raw.read(size))
        begins = max(self._start, place)
        ends = min(self._start + len(self._content), place + len(read))
        if begins < ends:
            own = self._content[begins - self._start : ends - self._start]
            read[begins - place : ends - place] = own
        return bytes(read)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return int(self._raw.seek(offset, whence))

    def tell(self) -> int:
        return int(self._raw.tell())

    def close(self) -> None:
        """Do nothing: the file's owner closes it."""


def _schema(source: pa.NativeFile) -> pa.Schema:
    """Return the schema; raises ArrowInvalid for a stream that does not end as it should.

    Arrow itself takes a stream that ends between two batches for a whole one.
    """
    opened = _opener(source)
    schema = opened(source).schema
    if opened is pa.ipc.open_stream:
        source.seek(0)
        begins = source.read(len(_CONTINUES))
        end = _CONTINUES + _END_OF_STREAM if begins == _CONTINUES else _END_OF_STREAM
        source.seek(max(0, source.size() - len(end)))
        if source.read() != end:
            raise pa.ArrowInvalid("the stream does not end")
    return schema


def _record_batches(source: pa.NativeFile, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    opened = _opener(source)
    schema = _schema(source)
    source.seek(0)
    wanted = sorted(map(schema.get_field_index, columns))
    options = pa.ipc.IpcReadOptions(
        use_threads=False,  # a thread may remain, and wait for ever when the interpreter ends
        included_fields=wanted or [0][: len(schema)],  # none would be all
    )
    reader = opened(source, options=options)
    if opened is pa.ipc.open_file:
        found = map(reader.get_batch, range(reader.num_record_batches))
    else:
        found = iter(reader)
    place = source.tell()
    for batch in found:
        place = source.tell()
        if len(batch):
            yield batch
    # The end itself must have been read, and be the file's: a batch, too, may end in zeros.
    if opened is pa.ipc.open_stream and not place < source.tell() == source.size():
        raise pa.ArrowInvalid("the stream ends before its file, or does not end")


def _opener(source: pa.NativeFile) -> Any:
    """Return the function that opens a file or a stream, whichever this is."""
    begins = source.read(len(_MAGIC))
    source.seek(0)
    return pa.ipc.open_file if begins == _MAGIC else pa.ipc.open_stream


def _validated(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch; raises ArrowInvalid if a value lies outside of its buffers.

    Arrow trusts the offsets and indices in a file. Of damaged ones it would read other memory. A
    string that is not UTF-8, or a time beyond a day's end, is its own record's fault alone.
    """
    for column in batch.columns:
        try:
            column.validate(full=True)
        except pa.ArrowInvalid:
            unchecked(column).validate(full=True)
    return batch
