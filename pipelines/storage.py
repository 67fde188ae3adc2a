"""Files wherever they are; staging areas; and how a local release appears."""

from __future__ import annotations

import errno
import logging
import os
import posixpath
import re
import shutil
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
from apache_beam.io.filesystem import BeamIOError, CompressionTypes
from apache_beam.io.filesystems import FileSystems

from transforms.errors import InputError
from transforms.parquet_files import table_in
from transforms.shards import Written

_LOGGER = logging.getLogger("quietcorpus.storage")
CARD = "release.json"
README = "README.md"
VOCABULARY = "vocabulary.parquet"
COMPRESSION = "compression.parquet"


def is_local(path: str) -> bool:
    """Whether a location is on this machine's file system."""
    return "://" not in path


def exists(uri: str) -> bool:
    """Whether a file exists."""
    try:
        return bool(FileSystems.exists(uri))
    except BeamIOError as error:
        # Beam's Azure file system raises for what is not there, with the answer's status.
        if [getattr(e, "code", None) for e in (error.exception_details or {}).values()] == [404]:
            return False
        raise


def read_bytes(uri: str) -> bytes:
    """A file's content."""
    with FileSystems.open(uri, compression_type=CompressionTypes.UNCOMPRESSED) as stream:
        return bytes(stream.read())


def read_table(uri: str) -> pa.Table:
    """A Parquet file's table."""
    return table_in(read_bytes(uri))


def write_bytes(uri: str, content: bytes) -> None:
    """Write a file."""
    with FileSystems.create(uri, compression_type=CompressionTypes.UNCOMPRESSED) as stream:
        stream.write(content)


def refuse_existing(output: str) -> None:
    """Raise InputError if something is at the output already, or it is a whole bucket."""
    if not is_local(output) and "/" not in output.split("://")[1]:
        raise InputError(f"output: {output} is a whole bucket; name a path inside it")
    try:
        released, occupied = exists(f"{output}/{CARD}"), is_occupied(output)
    except ValueError:
        raise InputError(
            f"output: {output} is on a file system that is not known here; check the scheme, and "
            "that the extra for it ([aws], [gcp] or [azure]) is installed"
        ) from None
    except (OSError, BeamIOError):
        raise InputError(
            f"output: {output} cannot be listed; check the path and the credentials"
        ) from None
    if released:
        raise InputError(f"output: {output} holds a release already; name another place")
    if occupied:
        raise InputError(f"output: {output} exists already and is not empty; name another place")


def is_occupied(output: str) -> bool:
    """Whether anything lies at an output."""
    if is_local(output):
        return os.path.lexists(output) and not (os.path.isdir(output) and not os.listdir(output))
    (found,) = FileSystems.match([f"{output}/**"], limits=[1])
    return bool(found.metadata_list)


def probe(key: str, folder: str) -> None:
    """Raise InputError unless files can be written to and deleted from a folder."""
    uri = f"{folder}/.probe-{uuid.uuid4().hex[:12]}"
    try:
        if is_local(folder):
            os.makedirs(folder, exist_ok=True)
        write_bytes(uri, b"1")  # object stores refuse an empty upload
        FileSystems.delete([uri])
    except Exception:  # every object store's client has exceptions of its own
        raise InputError(
            f"{key}: {folder} cannot be written to; check the path and the permissions"
        ) from None


def rows_of(files: Sequence[Written], path: str) -> int:
    """The number of rows of one file of a release."""
    return next(file.rows for file in files if file.path == path)


def new_staging(output: str) -> str:
    """A name, of this call's own, for a staging area beside an output."""
    folder, name = posixpath.split(output)
    return f"{folder}/.{name}.staging-{uuid.uuid4().hex[:12]}"


def is_staging(uri: str, output: str) -> bool:
    """Whether a name is one that `new_staging` gives for an output."""
    folder, name = posixpath.split(output)
    return bool(re.fullmatch(re.escape(f"{folder}/.{name}.staging-") + "[0-9a-f]{12}", uri))


@contextmanager
def staging_area(output: str) -> Iterator[str]:
    """A place beside the output where a release is put together; it is gone afterwards."""
    staging = new_staging(output)
    probe("output", posixpath.dirname(output))
    if is_local(staging):
        os.mkdir(staging, mode=0o700)
    try:
        yield staging
    finally:
        if is_local(staging):
            shutil.rmtree(staging, ignore_errors=True)
        else:
            delete_folder(staging)


def delete_folder(folder: str) -> bool:
    """Delete what lies under a prefix; whether that worked, and if not a warning says so."""
    try:
        (found,) = FileSystems.match([f"{folder}/**"])
        FileSystems.delete([metadata.path for metadata in found.metadata_list])
    except Exception:  # the run's own error, if there is one, is what the operator must see
        _LOGGER.warning("%s could not be deleted; delete it", folder)
        return False
    return True


def publish(
    output: str,
    staging: str,
    files: Sequence[Written],
    texts: dict[str, str],
    begins: Callable[[], None],
) -> None:
    """Have the whole folder of a local release appear at once."""
    target = f"{staging}/release"
    for folder in {posixpath.dirname(f"{target}/{file.path}") for file in files}:
        os.makedirs(folder, exist_ok=True)
    FileSystems.rename([file.staged for file in files], [f"{target}/{file.path}" for file in files])
    for name, text in texts.items():
        write_bytes(f"{target}/{name}", text.encode())
    begins()
    move(target, output)


def delete(names: Sequence[str], folder: str) -> None:
    """Delete what there is of these files; raises InputError if something may be left."""
    uris = [f"{folder}/{name}" for name in names]
    try:
        FileSystems.delete([uri for uri in uris if exists(uri)])
    except Exception:
        raise InputError(
            f"output: publishing to {folder} failed and could not be undone; delete what is there"
        ) from None


def move(target: str, output: str) -> None:
    """Have a local folder appear at once; raises InputError if something is there."""
    try:
        os.rename(target, output)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise InputError(
                f"output: {output} appeared meanwhile; nothing was changed there"
            ) from None
        raise
