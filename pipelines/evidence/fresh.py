"""The keys of draws that nobody will release."""

from __future__ import annotations

import secrets

from mechanisms.keystream import KEY_BYTES, ReleaseKey


def fresh_key() -> ReleaseKey:
    """A key of no release."""
    return ReleaseKey(secrets.token_bytes(KEY_BYTES))
