"""Files on any file system."""

from __future__ import annotations

import errno
import json
import logging
import os
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

import pyarrow as pa
from apache_beam.io.filesystem import BeamIOError, CompressionTypes
from apache_beam.io.filesystems import FileSystems

from quietcorpus.transforms.errors import InputError, client_errors
from quietcorpus.transforms.reading.parquet_files import table_in
from quietcorpus.transforms.shards import Written

from . import stores
from .places import is_local

_LOGGER = logging.getLogger("quietcorpus.storage")
_BLOCK = 1 << 20


def as_json(content: object) -> bytes:
    """Return a JSON file's content; raises ValueError for numbers that are not finite."""
    return (json.dumps(content, indent=2, allow_nan=False) + "\n").encode()


def exists(uri: str) -> bool:
    """Return whether a file exists."""
    try:
        return bool(FileSystems.exists(uri))
    except BeamIOError as error:
        # Beam's Azure file system raises for a missing file, with the response's status.
        if [getattr(e, "code", None) for e in (error.exception_details or {}).values()] == [404]:
            return False
        raise


def read_bytes(uri: str, most: int | None = None) -> bytes:
    """Read a file's content; raises InputError for one of more than `most` bytes."""
    with FileSystems.open(uri, compression_type=CompressionTypes.UNCOMPRESSED) as stream:
        if most is None:
            return bytes(stream.read())
        content = bytearray()
        while len(content) <= most and (block := stream.read(min(_BLOCK, most + 1 - len(content)))):
            content += block
    if len(content) > most:
        raise InputError(f"{uri}: more than {most:,} bytes, which no release has there")
    return bytes(content)


def read_table(uri: str) -> pa.Table:
    """Read a Parquet file's table."""
    return table_in(read_bytes(uri))


def write_bytes(uri: str, content: bytes) -> None:
    """Write a file."""
    write_chunks(uri, [content])


def write_chunks(uri: str, chunks: Iterable[bytes]) -> None:
    """Write a file from its content's chunks, one after another."""
    with FileSystems.create(uri, compression_type=CompressionTypes.UNCOMPRESSED) as stream:
        for chunk in chunks:
            stream.write(chunk)


def write_whole(uri: str, content: bytes) -> None:
    """Write a file, which at any time is there whole: as it was before, or with this content."""
    if not is_local(uri):  # in a store, an object appears whole or not at all
        write_bytes(uri, content)
        return
    os.makedirs(os.path.dirname(uri), exist_ok=True)
    partial = f"{uri}.partial"
    with open(partial, "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(partial, uri)


def listed(pattern: str, limit: int | None = None) -> list[str]:
    """Return the files, or the first of them, whose places match a pattern."""
    (found,) = FileSystems.match([pattern], limits=None if limit is None else [limit])
    return [metadata.path for metadata in found.metadata_list]


def below(folder: str) -> Iterator[tuple[str, int]]:
    """Yield the places and sizes of all files below a folder, whatever characters names have."""
    # Beam's public `match` takes brackets in names for a pattern, and drops what it does not match.
    for metadata in FileSystems.get_filesystem(folder)._list(f"{folder}/"):
        yield metadata.path, metadata.size_in_bytes


def probe(key: str, folder: str) -> None:
    """Raise InputError unless files can be written to a folder and deleted there."""
    uri = f"{folder}/.probe-{uuid.uuid4().hex[:12]}"
    with client_errors(
        f"{key}: {folder}", "cannot be written to; check the path and the permissions"
    ):
        if is_local(folder):
            os.makedirs(folder, exist_ok=True)
        try:
            write_bytes(uri, b"1")  # object stores refuse an empty upload
            FileSystems.delete([uri])
        except KeyboardInterrupt:
            with suppress(Exception):  # it may not be there
                FileSystems.delete([uri])
            raise


def rows_of(files: Sequence[Written], path: str) -> int:
    """Return the number of rows of one file of a release."""
    return next(file.rows for file in files if file.path == path)


def delete_folder(folder: str) -> bool:
    """Delete all that lies under a prefix; returns whether that worked, and logs if not."""
    try:
        FileSystems.delete(listed(f"{folder}/**"))
        if stores.is_supported(folder):
            stores.abort_uploads(f"{folder}/")
    except Exception:  # the run's own error, if there is one, is what the operator must see
        _LOGGER.warning("%s could not be deleted; delete it", folder)
        return False
    return True


def delete(names: Sequence[str], folder: str) -> None:
    """Delete those of these files that exist; raises InputError if something may be left."""
    uris = [f"{folder}/{name}" for name in names]
    try:
        FileSystems.delete([uri for uri in uris if exists(uri)])
    except Exception:  # every object store's client has its own
        raise InputError(
            f"output: publishing to {folder} failed and could not be undone; delete what is there"
        ) from None


def move(target: str, output: str) -> None:
    """Move a local folder to its output, at once; raises InputError if something is there."""
    try:
        os.rename(target, output)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise InputError(
                f"output: {output} appeared meanwhile; nothing was changed there"
            ) from None
        raise
