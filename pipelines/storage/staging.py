"""Staging areas: places beside an output where it is put together, and their deletion."""

from __future__ import annotations

import fcntl
import glob
import logging
import os
import posixpath
import re
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import BinaryIO

from quietcorpus.transforms.staged import records_in

from . import stores
from .files import delete_folder, listed, probe
from .places import is_local

_LOGGER = logging.getLogger("quietcorpus.storage")
RELEASE = "release"
"""The folder of a local staging area that becomes the output."""
_LOCK = ".lock"


def new_staging(output: str) -> str:
    """Return a name, fresh for each call, for a staging area beside an output."""
    folder, name = posixpath.split(output)
    return f"{folder}/.{name}.staging-{uuid.uuid4().hex[:12]}"


def is_staging(uri: str, output: str) -> bool:
    """Return whether a name is one that `new_staging` gives for an output."""
    folder, name = posixpath.split(output)
    return bool(re.fullmatch(re.escape(f"{folder}/.{name}.staging-") + "[0-9a-f]{12}", uri))


def shards_written(*stagings: str) -> int:
    """Count the shards that are written to staging areas; raises what the store raises."""
    # A shard that was tried twice has two files.
    found = [uri for staging in stagings for uri in listed(f"{staging}/data/part-*")]
    return len({posixpath.basename(uri).rpartition(".")[0] for uri in found})


def has_records(staging: str, identity: str) -> bool:
    """Return whether a run of an identity has finished a shard in a staging area."""
    return bool(listed(f"{records_in(staging, identity)}/*", 1))


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
    staging, lock = _new_lock(output)
    with lock:
        yield staging


def _new_lock(output: str) -> tuple[str, BinaryIO]:
    """Make a local staging area; return it and its lock, which is held until it is closed."""
    while True:
        staging = new_staging(output)
        os.mkdir(staging, mode=0o700)
        with suppress(FileNotFoundError), ExitStack() as held:
            lock = held.enter_context(open(f"{staging}/{_LOCK}", "wb"))
            fcntl.flock(lock, fcntl.LOCK_EX)
            # Another launcher may have deleted the folder as an abandoned one just before.
            if os.path.samestat(os.fstat(lock.fileno()), os.stat(lock.name)):
                held.pop_all()
                return staging, lock


@contextmanager
def abandoned_areas(output: str, wanted: Callable[[str], bool]) -> Iterator[list[str]]:
    """Yield the local staging areas of killed launchers that are wanted; delete them afterwards.

    This process holds their locks meanwhile, so that no other launcher uses or deletes them.
    """
    with ExitStack() as held:
        found = []
        for staging in _beside(output):
            with suppress(OSError):  # its launcher holds the lock, or it is another user's
                lock = _lock_of(staging)
                if not wanted(staging):
                    lock.close()
                    continue
                held.callback(lock.close)
                held.callback(shutil.rmtree, staging, ignore_errors=True)
                # A run that was killed as it published has left files there that are not sealed.
                shutil.rmtree(f"{staging}/{RELEASE}", ignore_errors=True)
                found.append(staging)
        yield found


def delete_abandoned(output: str) -> tuple[list[str], list[str]]:
    """Delete the local staging areas for an output whose launchers are gone.

    Returns them, and those that stay: their launchers hold them, or they are another user's.
    """
    deleted: list[str] = []
    held: list[str] = []
    for found in _beside(output):
        with suppress(OSError):
            _delete_if_abandoned(found)
        (held if os.path.exists(found) else deleted).append(found)
    return deleted, held


def _beside(output: str) -> list[str]:
    """Return the local staging areas for an output."""
    folder, name = posixpath.split(output)
    found = glob.glob(f"{glob.escape(folder)}/.{glob.escape(name)}.staging-*")
    return [one for one in found if is_staging(one, output) and not os.path.islink(one)]


def _lock_of(staging: str) -> BinaryIO:
    """Take the lock of a local staging area; raises OSError if another process holds it."""
    lock = open(f"{staging}/{_LOCK}", "r+b")  # noqa: SIM115
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise
    return lock


def _delete_if_abandoned(staging: str) -> None:
    """Delete a local staging area; raises OSError if its launcher holds the lock."""
    # No clock is asked, since clocks jump. A launcher makes the lock just after the folder: if the
    # empty folder is gone by then, it makes another.
    with suppress(OSError):
        os.rmdir(staging)
        return
    if not os.path.exists(f"{staging}/{_LOCK}"):  # what is left of a deletion that was cut short
        shutil.rmtree(staging, ignore_errors=True)
        return
    with _lock_of(staging):
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
