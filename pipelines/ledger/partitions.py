"""Which documents each partition has, as keyed digests of their ids, beside the records."""

from __future__ import annotations

import hashlib

import numpy as np

from pipelines import object_stores, storage
from pipelines.ledger.journal import FOLDER, Damaged
from transforms.identifiers import DIGEST


class Partitions:
    """The documents of the committed releases of partitions.

    A file for each, of 16 bytes a document. Whoever lacks the master key learns their number.
    """

    def __init__(self, ledger: str) -> None:
        self._folder = f"{ledger}/{FOLDER}"

    def keep(self, reservation: int, identifiers: bytes) -> str:
        """Write the digests of a release; their SHA-256. Equal ones may be written again."""
        content = bytes(identifiers)
        digest = hashlib.sha256(content).hexdigest()
        uri = self._uri(reservation, digest)
        if storage.is_local(uri):
            storage.write_bytes(uri, content)
        elif object_stores.read(uri) is None:
            object_stores.create_exclusively(uri, content)
        return digest

    def shared(self, reservation: int, digest: str, identifiers: bytes) -> int:
        """How many documents a release shares with others; raises Damaged if its file is not so."""
        uri = self._uri(reservation, digest)
        try:
            content = storage.read_bytes(uri)
        except Exception:  # every object store's client has exceptions of its own
            content = b""
        if hashlib.sha256(content).hexdigest() != digest:
            raise Damaged(f"{uri} is missing, or not the file that was committed")
        theirs, mine = (np.frombuffer(part, dtype=DIGEST) for part in (content, identifiers))
        return len(np.intersect1d(theirs, mine, assume_unique=True))

    def _uri(self, reservation: int, digest: str) -> str:
        return f"{self._folder}/{reservation:08d}-{digest[:16]}.bin"
