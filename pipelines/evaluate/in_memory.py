"""Private tables in memory, never on disk, which a pipeline of this process reads by URI."""

from __future__ import annotations

import hashlib
import io
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, ClassVar, NoReturn

import pyarrow as pa
import pyarrow.parquet as pq
from apache_beam.io.filesystem import BeamIOError, FileMetadata, FileSystem

_SCHEME = "quietcorpus-memory"


@contextmanager
def held(table: pa.Table) -> Iterator[str]:
    """Hold a table in memory as a Parquet file, and yield its URI, known to this process alone."""
    sink = io.BytesIO()
    pq.write_table(table, sink)
    uri = f"{_SCHEME}://{secrets.token_hex(8)}/corpus.parquet"
    _Memory.files[uri] = sink.getvalue()
    try:
        yield uri
    finally:
        del _Memory.files[uri]


class _Memory(FileSystem):  # type: ignore[misc]
    """The file system of held files; Beam finds file systems by their schemes."""

    files: ClassVar[dict[str, bytes]] = {}

    @classmethod
    def scheme(cls) -> str:
        return _SCHEME

    def exists(self, path: str) -> bool:
        return path in self.files

    def metadata(self, path: str) -> FileMetadata:
        return FileMetadata(path, self.size(path), self.last_updated(path))

    def size(self, path: str) -> int:
        return len(self._content(path))

    def last_updated(self, path: str) -> float:
        return 0.0  # it never changes

    def checksum(self, path: str) -> str:
        return hashlib.sha256(self._content(path)).hexdigest()

    def open(self, path: str, *_: Any, **__: Any) -> BinaryIO:
        return io.BytesIO(self._content(path))

    def _list(self, dir_or_prefix: str) -> Iterator[FileMetadata]:
        return (self.metadata(path) for path in self.files if path.startswith(dir_or_prefix))

    def _content(self, path: str) -> bytes:
        try:
            return self.files[path]
        except KeyError:
            raise BeamIOError(f"{path} is not held in this process") from None

    def _refused(self, *_: Any, **__: Any) -> NoReturn:
        raise BeamIOError(f"{_SCHEME}: files are held by `held` alone, one by one")

    # Beam declares these abstract. None is needed to read a single file.
    join = split = mkdirs = has_dirs = create = copy = rename = delete = _refused
