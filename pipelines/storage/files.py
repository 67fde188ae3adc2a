"""Files on any file system, staging areas, and the publication of a local release."""

from __future__ import annotations

import errno
import fcntl
import glob
import logging
import os
import posixpath
import re
import shutil
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress

import pyarrow as pa
from apache_beam.io.filesystem import BeamIOError, CompressionTypes
from apache_beam.io.filesystems import FileSystems

from quietcorpus.pipelines.storage.layout import CARD
from quietcorpus.pipelines.storage.places import is_local
from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.reading.parquet_files import table_in
from quietcorpus.transforms.shards import Written

_LOGGER = logging.getLogger("quietcorpus.storage")
_LOCK = ".lock"
_LOCK_SECONDS = 60.0


def exists(uri: str) -> bool:
    """Return whether a file exists."""
    try:
        return bool(FileSystems.exists(uri))
    except BeamIOError as error:
        # Beam's Azure file system raises for a missing file, with the response's status.
        if [getattr(e, "code", None) for e in (error.exception_details or {}).values()] == [404]:
            return False
        raise


def read_bytes(uri: str) -> bytes:
    """Read a file's content."""
    with FileSystems.open(uri, compression_type=CompressionTypes.UNCOMPRESSED) as stream:
        return bytes(stream.read())


def read_table(uri: str) -> pa.Table:
    """Read a Parquet file's table."""
    return table_in(read_bytes(uri))


def write_bytes(uri: str, content: bytes) -> None:
    """Write a file."""
    with FileSystems.create(uri, compression_type=CompressionTypes.UNCOMPRESSED) as stream:
        stream.write(content)


def write_chunks(uri: str, chunks: Iterable[bytes]) -> None:
    """Write a file from its content's chunks, one after another."""
    with FileSystems.create(uri, compression_type=CompressionTypes.UNCOMPRESSED) as stream:
        for chunk in chunks:
            stream.write(chunk)


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
    """Return whether anything lies at an output."""
    if is_local(output):
        return os.path.lexists(output) and not (os.path.isdir(output) and not os.listdir(output))
    (found,) = FileSystems.match([f"{output}/**"], limits=[1])
    return bool(found.metadata_list)


def probe(key: str, folder: str) -> None:
    """Raise InputError unless files can be written to a folder and deleted there."""
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
    """Return the number of rows of one file of a release."""
    return next(file.rows for file in files if file.path == path)


def new_staging(output: str) -> str:
    """Return a name, fresh for each call, for a staging area beside an output."""
    folder, name = posixpath.split(output)
    return f"{folder}/.{name}.staging-{uuid.uuid4().hex[:12]}"


def is_staging(uri: str, output: str) -> bool:
    """Return whether a name is one that `new_staging` gives for an output."""
    folder, name = posixpath.split(output)
    return bool(re.fullmatch(re.escape(f"{folder}/.{name}.staging-") + "[0-9a-f]{12}", uri))


@contextmanager
def staging_area(output: str) -> Iterator[str]:
    """Yield a place beside the output where a release is put together; delete it afterwards.

    Local places that killed launchers have left are deleted first.
    """
    staging = new_staging(output)
    probe("output", posixpath.dirname(output))
    if not is_local(staging):
        try:
            yield staging
        finally:
            delete_folder(staging)
        return
    _delete_abandoned(output)
    with _locked(output) as staging:
        try:
            yield staging
        finally:
            shutil.rmtree(staging, ignore_errors=True)


@contextmanager
def _locked(output: str) -> Iterator[str]:
    """Yield a new local staging area, with a lock that the kernel holds while this process runs."""
    while True:
        staging = new_staging(output)
        os.mkdir(staging, mode=0o700)
        with suppress(FileNotFoundError), open(f"{staging}/{_LOCK}", "wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            # Another launcher may have deleted the folder as an abandoned one just before.
            if os.path.samestat(os.fstat(lock.fileno()), os.stat(lock.name)):
                yield staging
                return


def _delete_abandoned(output: str) -> None:
    """Delete the local staging areas for an output whose launchers are gone."""
    folder, name = posixpath.split(output)
    for found in glob.glob(f"{glob.escape(folder)}/.{glob.escape(name)}.staging-*"):
        if is_staging(found, output):
            with suppress(OSError):  # it is held, went meanwhile, or is another user's
                _delete_if_abandoned(found)


def _delete_if_abandoned(staging: str) -> None:
    """Delete a local staging area; raises OSError if its launcher holds the lock."""
    path = f"{staging}/{_LOCK}"
    if not os.path.exists(path):  # its launcher makes the lock just after the folder
        if time.time() - os.stat(staging).st_mtime > _LOCK_SECONDS:
            shutil.rmtree(staging, ignore_errors=True)
        return
    with open(path, "r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _LOGGER.info("deleting %s, which a launcher that was killed has left", staging)
        shutil.rmtree(staging, ignore_errors=True)


def stagings_of(output: str) -> set[str]:
    """Return the staging areas, for an output in a store, in which anything lies."""
    folder, name = posixpath.split(output)
    (found,) = FileSystems.match([f"{folder}/.{name}.staging-*/**"])
    stagings = {
        f"{folder}/{metadata.path.removeprefix(f'{folder}/').split('/')[0]}"
        for metadata in found.metadata_list
    }
    return {staging for staging in stagings if is_staging(staging, output)}


def delete_folder(folder: str) -> bool:
    """Delete all that lies under a prefix; returns whether that worked, and logs if not."""
    try:
        (found,) = FileSystems.match([f"{folder}/**"])
        FileSystems.delete([metadata.path for metadata in found.metadata_list])
    except Exception:  # the run's own error, if there is one, is what the operator must see
        _LOGGER.warning("%s could not be deleted; delete it", folder)
        return False
    return True


def delete(names: Sequence[str], folder: str) -> None:
    """Delete those of these files that exist; raises InputError if something may be left."""
    uris = [f"{folder}/{name}" for name in names]
    try:
        FileSystems.delete([uri for uri in uris if exists(uri)])
    except Exception:
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
