"""Conditional writes on object stores, by the clients and credentials of Beam's file systems.

If the answer to a write is lost, reading back settles whether it happened. So the content of a
write must be its caller's own, for instance by a random part.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterable

from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions

from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.outages import status_of

from .clients import STORES, Aged, StoredObject, Versioned

_LOGGER = logging.getLogger("quietcorpus.storage")
_NO_OPTIONS = PipelineOptions([])
_ATTEMPTS = 8
_LONGEST_PAUSE_SECONDS = 0.5
_CONFLICTS = (409, 412)
_REFUSALS = (401, 403, 405, 501)


def is_supported(uri: str) -> bool:
    """Return whether a location is in a store with conditional writes."""
    return uri.split("://", maxsplit=1)[0] in STORES and "://" in uri


def stored(uri: str) -> StoredObject:
    """Return the object that a URI names; raises InputError without conditional writes."""
    # `FileSystems.set_options` (filesystems.py) has no public counterpart that reads the options.
    options = FileSystems._pipeline_options or _NO_OPTIONS
    scheme = uri.split("://", maxsplit=1)[0]
    if scheme not in STORES:
        raise InputError(
            f"{uri}: a store of this kind offers no conditional write, by which one run excludes "
            f"the others; use a local path, or one of {', '.join(STORES)}"
        )
    return STORES[scheme](uri, options)


def create_exclusively(uri: str, content: bytes) -> bool:
    """Create an object; False if another writer has created it with other content.

    Raises InputError for a store without conditional writes, and what the store's client raises
    where it fails: the object may then appear nevertheless, even later.
    """
    return _write(stored(uri), content, None)


def read(uri: str) -> Versioned | None:
    """Read an object's content and version, or return None if there is none."""
    return stored(uri).read()


def age(uri: str) -> Aged | None:
    """Return an object's version and its age in seconds, by the store's clock; None without one."""
    return stored(uri).age()


def names(folder: str) -> list[str]:
    """Return the names of the objects in a folder, without those of its subfolders."""
    return [name for name in stored(f"{folder}/").names() if name]  # some list the folder as well


def replace(uri: str, content: bytes, version: str) -> bool:
    """Overwrite one version of an object; False if it has since changed, or is gone."""
    return _write(stored(uri), content, version)


def delete(uri: str, version: str) -> bool:
    """Delete one version of an object; False if it has since changed, or is gone."""
    target = stored(uri)
    try:
        target.delete(version)
    except Exception as error:
        if status_of(error) in (*_CONFLICTS, 404):
            return False
        raise
    return True


def upload(uri: str, chunks: Iterable[bytes]) -> None:
    """Write an object of any size, whatever lies there: all of it, or nothing if that fails."""
    stored(uri).upload(_Stream(chunks))


def abort_uploads(prefix: str, chosen: Callable[[str], bool] = lambda uri: True) -> None:
    """Discard the parts of chosen objects under a prefix whose upload was not completed.

    A process that is killed leaves them: no listing of objects shows them, and they are billed.
    """
    try:
        stored(prefix).abort_uploads(chosen)
    except Exception:  # not every store lists them, and not every key may do that
        _LOGGER.warning(
            "parts of uploads may be left at %s; let a lifecycle rule of the bucket discard them",
            prefix,
        )


class _Stream:
    """A stream of chunks for the stores' clients: reads are of full size, except at the end."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._held = bytearray()
        self._place = 0

    def read(self, size: int = -1) -> bytes:
        """Read `size` bytes, or what is left."""
        while size < 0 or len(self._held) < size:
            chunk = next(self._chunks, None)
            if chunk is None:
                break
            self._held += chunk
        content = bytes(self._held if size < 0 else self._held[:size])
        del self._held[: len(content)]
        self._place += len(content)
        return content

    def tell(self) -> int:
        """Return the number of bytes that were read."""
        return self._place


def _write(target: StoredObject, content: bytes, replacing: str | None) -> bool:
    for attempt in range(_ATTEMPTS):
        try:
            target.put(content, replacing)
        except Exception as error:
            if status_of(error) in _REFUSALS:
                raise
            found = target.read()
            if found is not None and found[0] == content:
                return True  # an earlier attempt succeeded, and its answer was lost
            if (found and found[1]) != replacing:
                return False
            # The object is unchanged: the conflicting write failed or was deleted, or the cause of
            # the error is unknown.
            if status_of(error) not in _CONFLICTS or attempt == _ATTEMPTS - 1:
                raise
            time.sleep(random.uniform(0, _LONGEST_PAUSE_SECONDS))  # noqa: S311
        else:
            return True
    raise AssertionError
