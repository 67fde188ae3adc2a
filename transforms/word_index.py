"""A word index by its URI: found by the launcher, fetched once a host and opened by its workers."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import tempfile
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


@functools.lru_cache(maxsize=2)
def _open(uri: str, digest: str) -> WordIndex:
    if "://" not in uri:
        return artefact.open_index(uri, digest)
    folder = _cache() / digest
    with fasteners.InterProcessLock(f"{folder}.lock"):  # or every worker of a host would fetch it
        if folder.is_dir():
            with contextlib.suppress(ArtefactError):
                return artefact.open_index(str(folder), digest)
            shutil.rmtree(folder)  # somebody's disk or hand has damaged it
        torn = folder.with_name(f"{digest}.{uuid.uuid4().hex}")
        torn.mkdir()
        try:
            _fetch(uri, torn, digest)
            torn.rename(folder)
        finally:
            shutil.rmtree(torn, ignore_errors=True)
    return artefact.open_index(str(folder), digest)


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
        if place.stat().st_uid == os.getuid() and os.access(place, os.W_OK):
            return place
    raise ArtefactError(f"cannot be kept anywhere; set ${CACHE} to a folder that can be written to")


def _places() -> list[Path]:
    if named := os.environ.get(CACHE):
        return [Path(named)]
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "quietcorpus"
    return [home, Path(tempfile.gettempdir()) / f"quietcorpus-{os.getuid()}"]
