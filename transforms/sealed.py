"""Private text that a job must leave in its staging area for a while: encrypted and authenticated.

The staging area lies beside the release, where others may read, and outlives a job that is killed.
"""

from __future__ import annotations

import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from mechanisms.keystream import ReleaseKey
from transforms.errors import StageError

_NONCE_BYTES = 12
_PURPOSE = "staged text"


def seal(content: bytes, path: str, key: ReleaseKey) -> bytes:
    """Encrypt the content of a staged file (AES-256-GCM) for those who have the release key."""
    nonce = os.urandom(_NONCE_BYTES)
    return nonce + AESGCM(key.sealing(_PURPOSE)).encrypt(nonce, content, path.encode())


def unseal(sealed: bytes, path: str, key: ReleaseKey) -> bytes:
    """Its content again; raises StageError if it is not what was sealed under this path."""
    nonce, rest = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:]
    try:
        return AESGCM(key.sealing(_PURPOSE)).decrypt(nonce, rest, path.encode())
    except (InvalidTag, ValueError):
        raise StageError(f"{path}: the staged file was changed on its way; run again") from None
