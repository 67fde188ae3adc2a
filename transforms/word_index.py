"""A word index by its URI: found by the launcher, fetched once a host and opened by its workers."""

from __future__ import annotations

import functools
import os
import shutil
import stat
import tempfile
import threading
import uuid
from dataclasses import dataclass
from pathlib import Path

import fasteners
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from indexes import artefact
from indexes.artefact import MANIFEST, ArtefactError, WordIndex
from transforms.artefacts import Artefact
from transforms.errors import InputError

CACHE = "QUIETCORPUS_CACHE"
"""The variable that names the folder in which fetched indexes are kept."""


@dataclass(frozen=True)
class IndexSource:
    """A word index, named by a key of the spec.

    Attributes:
        key: the spec's key, for errors.
        uri: its folder.
        digest: the SHA-256 of its manifest when the release began.
    """

    key: str
    uri: str
    digest: str

    @classmethod
    def found(cls, key: str, uri: str) -> IndexSource:
        """The index as it is now; raises InputError if there is none."""
        try:
            manifest = Artefact.found(key, f"{uri}/{MANIFEST}")
        except InputError:
            raise InputError(
                f"{key}: {uri} is no index: it has no {MANIFEST} that can be read; make one with "
                "`quietcorpus index build`"
            ) from None
        return cls(key, uri, manifest.digest)

    def open(self) -> WordIndex:
        """Fetch, verify and map the index, once a process; raises InputError if it is unusable."""
        try:
            return _open(self.uri, self.digest)
        except ArtefactError as error:
            raise InputError(f"{self.key}: {self.uri} {error}") from None


_threads = threading.Lock()  # the lock between processes does not part a process's threads


def _open(uri: str, digest: str) -> WordIndex:
    with _threads:
        return _open_once(uri, digest)


@functools.lru_cache(maxsize=2)
def _open_once(uri: str, digest: str) -> WordIndex:
    if "://" not in uri:
        return artefact.open_index(uri, digest)
    folder = _cache() / digest
    try:
        with fasteners.InterProcessLock(f"{folder}.lock"):  # or every worker would fetch it
            if not _is_intact(folder, digest):
                _replace(folder, uri, digest)
        return artefact.open_index(str(folder), digest)
    except OSError:
        raise ArtefactError(
            f"cannot be kept in {folder.parent}; see to its permissions and its room, or set "
            f"${CACHE} to another folder"
        ) from None


def _is_intact(folder: Path, digest: str) -> bool:
    """Whether a copy is there already; somebody's disk or hand may have damaged it."""
    try:
        artefact.verify(str(folder), artefact.read_manifest(str(folder), digest))
    except ArtefactError:
        return False
    return True


def _replace(folder: Path, uri: str, digest: str) -> None:
    """Fetch a copy beside the folder and have it appear whole; what was torn before goes."""
    for left in folder.parent.glob(f"{digest}.*.torn"):
        shutil.rmtree(left, ignore_errors=True)
    torn = folder.with_name(f"{digest}.{uuid.uuid4().hex}.torn")
    torn.mkdir()
    try:
        _fetch(uri, torn, digest)
        shutil.rmtree(folder, ignore_errors=True)
        torn.rename(folder)
    finally:
        shutil.rmtree(torn, ignore_errors=True)


def _fetch(uri: str, folder: Path, digest: str) -> None:
    """Download and verify; raises ArtefactError."""
    try:
        _copy(uri, folder, MANIFEST)
        manifest = artefact.read_manifest(str(folder), digest)
        for name in artefact.FILES:
            _copy(uri, folder, name)
    except ArtefactError:
        raise
    except Exception:  # every object store's client has exceptions of its own
        raise ArtefactError(
            "cannot be fetched; check the path, the credentials, and the room in "
            f"{folder.parent} (${CACHE} names another place)"
        ) from None
    artefact.verify(str(folder), manifest)


def _copy(uri: str, folder: Path, name: str) -> None:
    source = FileSystems.open(f"{uri}/{name}", compression_type=CompressionTypes.UNCOMPRESSED)
    with source as stream, open(folder / name, "wb") as sink:
        shutil.copyfileobj(stream, sink, 1 << 22)


def _cache() -> Path:
    """A folder of this user's own, where nobody else can put an index."""
    for place in _places():
        try:
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError:
            continue
        # A link in a shared temporary folder may be anybody's, and be turned at any time.
        found = place.lstat() if place.parent == _temporary() else place.stat()
        safe = stat.S_ISDIR(found.st_mode) and not found.st_mode & 0o022
        if safe and found.st_uid == os.getuid() and os.access(place, os.W_OK):
            return place
    raise ArtefactError(
        f"cannot be kept anywhere; set ${CACHE} to a folder that you, and nobody else, can write to"
    )


def _places() -> list[Path]:
    if named := os.environ.get(CACHE):
        return [Path(named)]
    temporary = _temporary() / f"quietcorpus-{os.getuid()}"
    try:
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:  # a container's user may have no home
        return [temporary]
    return [home / "quietcorpus", temporary]


def _temporary() -> Path:
    return Path(tempfile.gettempdir())
