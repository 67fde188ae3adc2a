"""The documents of each partition, as keyed digests of their ids, stored with the records."""

from __future__ import annotations

import hashlib
import os
import posixpath

import numpy as np

from quietcorpus.transforms.errors import blamed
from quietcorpus.transforms.outages import outage
from quietcorpus.transforms.reading.identifiers import DIGEST

from ..storage import files as storage
from ..storage import places
from .journal import FOLDER, Damaged, create


class Partitions:
    """The documents of the releases of partitions, once they are compared.

    Each release has one file, of 16 bytes a document. Without the master key a reader learns only
    the number of documents.
    """

    def __init__(self, ledger: str) -> None:
        self._folder = f"{ledger}/{FOLDER}"

    def keep(self, reservation: int, identifiers: bytes) -> str:
        """Write a release's digests, and return their SHA-256. Equal ones may be written again."""
        content = bytes(identifiers)
        digest = hashlib.sha256(content).hexdigest()
        uri = self._uri(reservation, digest)
        if places.is_local(uri):
            os.makedirs(self._folder, exist_ok=True)
        create(*posixpath.split(uri), content)
        return digest

    def shared(self, reservation: int, digest: str, identifiers: bytes) -> int:
        """Count the documents that a release shares with others; raises Damaged as `read` does."""
        theirs, mine = (
            np.frombuffer(part, dtype=DIGEST)
            for part in (self.read(reservation, digest), identifiers)
        )
        return len(np.intersect1d(theirs, mine, assume_unique=True))

    def read(self, reservation: int, digest: str) -> bytes:
        """Read the digests of a release; raises Damaged if they are not the recorded ones."""
        uri = self._uri(reservation, digest)
        try:
            content = storage.read_bytes(uri)
        except Exception as error:  # every object store's client raises its own exceptions
            if outage(error):
                raise blamed(error, f"ledger: {uri}", "cannot be read") from None
            content = b""
        if hashlib.sha256(content).hexdigest() != digest:
            raise Damaged(f"{uri} is missing, or not the file that was recorded")
        return content

    def _uri(self, reservation: int, digest: str) -> str:
        return f"{self._folder}/{reservation:08d}-{digest[:16]}.bin"
