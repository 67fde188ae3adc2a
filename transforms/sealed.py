"""Sealed files: staged where others may read them, and so encrypted and authenticated.

The staging area lies beside the release, and outlives a job that is killed. If its content were
readable, its budget could be given back and spent again. So all of it, texts and noisy rows alike,
is sealed under the release key until it is published.

The format is STREAM (Hoang, Reyhanitabar, Rogaway and Vizar: Online authenticated-encryption and
its nonce-reuse misuse-resistance, CRYPTO 2015, section 7) over AES-256-GCM: a random salt, from
which the message's own key is derived, then the chunks. A chunk's nonce holds its number, and
whether it is the last. No chunk can be changed, moved, left out or added without notice.

A message is bound to its name. A staged file is named by its location, under a name that each run
draws, so a run cannot use what another run, which may have other budgets, has sealed. Only a run of
the same identity may, by a record that is bound to that identity (`finished`).
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator
from typing import IO

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from quietcorpus.mechanisms.keystream import ReleaseKey

from .errors import StageError

CHUNK_BYTES = 1 << 20
_SALT_BYTES = 16
_TAG_BYTES = 16


class SealedSink:
    """A binary sink that seals its input under a name and writes it to another sink.

    `close` writes the last chunk and leaves the other sink open.
    """

    def __init__(self, raw: IO[bytes], name: str, key: ReleaseKey) -> None:
        self._raw = raw
        salt = os.urandom(_SALT_BYTES)
        self._chunks = _Chunks(name, key, salt)
        self._held = bytearray()
        self.closed = False
        raw.write(salt)

    def write(self, data: bytes) -> int:
        self._held += data
        while len(self._held) > CHUNK_BYTES:  # a full one is held: it may be the last
            self._raw.write(self._chunks.seal(bytes(self._held[:CHUNK_BYTES]), last=False))
            del self._held[:CHUNK_BYTES]
        return len(data)

    def flush(self) -> None:
        """Do nothing: a chunk is written when it is full."""

    def close(self) -> None:
        if not self.closed:
            self._raw.write(self._chunks.seal(bytes(self._held), last=True))
        self.closed = True


def unsealed(raw: IO[bytes], name: str, key: ReleaseKey) -> Iterator[bytes]:
    """Yield the content of a sealed file, in chunks.

    Raises StageError where it is not what was sealed under this name. The chunks before that are
    then not a whole file, and must not be used.
    """
    chunks = _Chunks(name, key, _read(raw, _SALT_BYTES))
    size = CHUNK_BYTES + _TAG_BYTES
    sealed = _read(raw, size)
    while True:
        following = _read(raw, size) if len(sealed) == size else b""
        yield chunks.unseal(sealed, last=not following)
        if not following:
            return
        sealed = following


def seal(content: bytes, name: str, key: ReleaseKey) -> bytes:
    """Seal content that fits into memory."""
    return seal_pieces([content], name, key)


def seal_pieces(pieces: Iterable[bytes], name: str, key: ReleaseKey) -> bytes:
    """Seal content that is made piece by piece, and fits into memory."""
    raw = io.BytesIO()
    sink = SealedSink(raw, name, key)
    for piece in pieces:
        sink.write(piece)
    sink.close()
    return raw.getvalue()


def unseal(sealed: bytes, name: str, key: ReleaseKey) -> bytes:
    """Unseal content; raises StageError if it is not what was sealed under this name."""
    return b"".join(unsealed(io.BytesIO(sealed), name, key))


def wide(number: int) -> str:
    """Write a number in a fixed width: who sees the size of a sealed file must not learn digits."""
    return f"{number:020d}"


class _Chunks:
    """The cipher of one file's chunks, which come in order."""

    def __init__(self, name: str, key: ReleaseKey, salt: bytes) -> None:
        self._name = name
        self._cipher = AESGCM(key.sealing(salt))
        self._number = 0

    def _nonce(self, *, last: bool) -> bytes:
        nonce = self._number.to_bytes(11, "big") + bytes([last])
        self._number += 1
        return nonce

    def seal(self, chunk: bytes, *, last: bool) -> bytes:
        return self._cipher.encrypt(self._nonce(last=last), chunk, self._name.encode())

    def unseal(self, sealed: bytes, *, last: bool) -> bytes:
        try:
            return self._cipher.decrypt(self._nonce(last=last), sealed, self._name.encode())
        except (InvalidTag, ValueError):
            raise StageError(
                f"{self._name}: the staged file was changed on its way; run again"
            ) from None


def _read(raw: IO[bytes], size: int) -> bytes:
    """Read `size` bytes, or what is left; a single read of a store may return fewer."""
    parts = []
    while size and (part := raw.read(size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
