"""A word index by its URI: found by the launcher, and opened by its workers."""

from __future__ import annotations

import functools
import threading
from dataclasses import dataclass

from indexes import artefact
from indexes.artefact import Manifest, WordIndex
from indexes.folder import ArtefactError
from transforms import folders
from transforms.errors import InputError


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
        command = "quietcorpus index build"
        return cls(key, uri, folders.manifest_digest(key, uri, noun="index", command=command))

    def open(self) -> WordIndex:
        """Fetch, verify and map the index, once a process; raises InputError if it is unusable."""
        try:
            return _open(self.uri, self.digest)
        except ArtefactError as error:
            raise InputError(f"{self.key}: {self.uri} {error}") from None


_threads = threading.Lock()  # neither fetching nor the cache of functools parts a process's threads


def _open(uri: str, digest: str) -> WordIndex:
    with _threads:
        return _open_once(uri, digest)


@functools.lru_cache(maxsize=2)
def _open_once(uri: str, digest: str) -> WordIndex:
    return artefact.open_index(folders.local(uri, digest, Manifest.read), digest)
