"""Candidates by their URI: found by the launcher, fetched once a host and opened by its workers."""

from __future__ import annotations

import functools
import threading
from dataclasses import dataclass

from indexes.candidates import Candidates, Manifest, open_candidates
from indexes.folder import ArtefactError
from transforms.errors import InputError
from transforms.folders import local, manifest_digest

_threads = threading.Lock()  # the lock between processes does not part a process's threads


@dataclass(frozen=True)
class CandidatesSource:
    """Candidates, named by a key of the spec.

    Attributes:
        key: the spec's key, for errors.
        uri: their folder.
        digest: the SHA-256 of their manifest when the release began.
    """

    key: str
    uri: str
    digest: str

    @classmethod
    def found(cls, key: str, uri: str) -> CandidatesSource:
        """The candidates as they are now; raises InputError if there are none."""
        command = "quietcorpus index build-candidates"
        digest = manifest_digest(key, uri, noun="set of candidates", command=command)
        return cls(key, uri, digest)

    def open(self) -> Candidates:
        """Fetch, verify and read them, once a process; raises InputError if they are unusable."""
        try:
            with _threads:
                return _opened(self.uri, self.digest)
        except ArtefactError as error:
            raise InputError(f"{self.key}: {self.uri} {error}") from None


@functools.lru_cache(maxsize=1)
def _opened(uri: str, digest: str) -> Candidates:
    return open_candidates(local(uri, digest, Manifest.read), digest)
