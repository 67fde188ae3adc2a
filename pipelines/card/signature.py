"""The signature of a release: of its card, which has the digests of all other files.

It signs the exact bytes of `release.json`, and stands in a file beside it as 64 bytes in Base64, so
that OpenSSL can check it too. It is not on the card: the signer changes no released byte.
"""

from __future__ import annotations

import base64

from quietcorpus.transforms.errors import InputError, client_errors

from ..environment.keys import SigningKey, is_signed, read_public_key
from ..storage import files as storage
from ..storage import layout

_BYTES, _LONGEST = 64, 1_024


def of(card: bytes, key: SigningKey) -> str:
    """Return the content of a card's signature file; equal cards and keys give equal ones."""
    return _text(key.sign(card))


def check(output: str, card: bytes, public_key: str | None) -> bool:
    """Raise InputError unless a release's signature is by a key; without a key, if it is none.

    Returns whether there is a signature that was not compared, for want of a key.

    Args:
        output: the release's place.
        card: the bytes of its card.
        public_key: the path of a PEM file; None if it need not be signed.
    """
    public = None if public_key is None else read_public_key("public key", public_key)
    uri = f"{output}/{layout.SIGNATURE}"
    found = _read(uri)
    if public is None:
        return found is not None
    if found is None:
        raise InputError(f"{uri}: missing: the release is not signed, or its signature was removed")
    if not is_signed(public, found, card):
        raise InputError(f"{uri}: not by the key in {public_key}, or of another {layout.CARD}")
    return False


def _read(uri: str) -> bytes | None:
    """Return the signature that is there; raises InputError for anything else."""
    with client_errors(uri, "cannot be read; check the path and the permissions"):
        if not storage.exists(uri):
            return None
        content = storage.read_bytes(uri, _LONGEST)
    try:
        found = base64.b64decode(content.removesuffix(b"\n"), validate=True)
    except ValueError:
        found = b""
    if len(found) != _BYTES or content != _text(found).encode():
        raise InputError(f"{uri}: not a signature, which is 64 bytes in Base64")
    return found


def _text(signature: bytes) -> str:
    return base64.b64encode(signature).decode() + "\n"
