"""Staging areas: places beside an output where it is put together, and their deletion."""

from __future__ import annotations

import fcntl
import glob
import logging
import os
import posixpath
import re
import shutil
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from quietcorpus.pipelines.storage import stores
from quietcorpus.pipelines.storage.files import delete_folder, listed, probe
from quietcorpus.pipelines.storage.places import is_local

_LOGGER = logging.getLogger("quietcorpus.storage")
_LOCK = ".lock"
_LOCK_SECONDS = 60.0


def new_staging(output: str) -> str:
    """Return a name, fresh for each call, for a staging area beside an output."""
    folder, name = posixpath.split(output)
    return f"{folder}/.{name}.staging-{uuid.uuid4().hex[:12]}"


def is_staging(uri: str, output: str) -> bool:
    """Return whether a name is one that `new_staging` gives for an output."""
    folder, name = posixpath.split(output)
    return bool(re.fullmatch(re.escape(f"{folder}/.{name}.staging-") + "[0-9a-f]{12}", uri))


def shards_written(staging: str) -> int:
    """Count the shards that are written to a staging area; raises what the store raises."""
    # A shard that was tried twice has two files.
    return len({uri.rpartition(".")[0] for uri in listed(f"{staging}/data/part-*")})


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
    delete_abandoned(output)
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


def delete_abandoned(output: str) -> tuple[list[str], list[str]]:
    """Delete the local staging areas for an output whose launchers are gone.

    Returns them, and those that stay: their launchers hold them, or they are another user's.
    """
    folder, name = posixpath.split(output)
    deleted: list[str] = []
    held: list[str] = []
    for found in glob.glob(f"{glob.escape(folder)}/.{glob.escape(name)}.staging-*"):
        if is_staging(found, output):
            with suppress(OSError):
                _delete_if_abandoned(found)
            (held if os.path.exists(found) else deleted).append(found)
    return deleted, held


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


def abort_uploads_of(output: str) -> None:
    """Discard what was uploaded to an output in a store, and to its staging areas, but for a part.

    The caller has the output's claim, and has not begun to write.
    """
    folder, name = posixpath.split(output)
    start = f"{folder}/.{name}.staging-"
    stores.abort_uploads(
        start, lambda uri: is_staging(start + uri.removeprefix(start).split("/")[0], output)
    )
    stores.abort_uploads(f"{output}/")


def stagings_of(output: str) -> set[str]:
    """Return the staging areas, for an output in a store, in which anything lies."""
    folder, name = posixpath.split(output)
    stagings = {
        f"{folder}/{path.removeprefix(f'{folder}/').split('/')[0]}"
        for path in listed(f"{folder}/.{name}.staging-*/**")
    }
    return {staging for staging in stagings if is_staging(staging, output)}
