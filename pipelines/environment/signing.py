"""Keys that sign: Ed25519, in the PEM files that OpenSSL writes.

The signer's environment names the private key, which is in no spec, log or release. Only the
launcher signs, so that workers need none. A public key is not secret; a verifier must obtain it
from its holder, and not from the place that is checked.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

from quietcorpus.transforms.errors import InputError

from .keys import private_text

RELEASE_KEY = "QUIETCORPUS_SIGNING_KEY_FILE"
"""The variable that names the file of the key by which releases are signed."""
LEDGER_KEY = "QUIETCORPUS_LEDGER_KEY_FILE"
"""The variable that names the file of the key by which a ledger's records are signed."""
LEDGER_PUBLIC_KEY = "QUIETCORPUS_LEDGER_PUBLIC_KEY_FILE"
"""The variable that names the file of the public key that a ledger must be signed by."""
_GENERATE = "make one with `openssl genpkey -algorithm ed25519`"
_EXTRACT = "`openssl pkey -in KEY -pubout` writes it"


@dataclass(frozen=True)
class SigningKey:
    """A private key, which signs.

    Attributes:
        private: the key itself, which is never shown.
    """

    private: Ed25519PrivateKey = field(repr=False)

    @property
    def public(self) -> str:
        """Return its public key: 32 bytes, hexadecimal."""
        return self.private.public_key().public_bytes_raw().hex()

    def sign(self, content: bytes) -> bytes:
        """Return the signature of a content, 64 bytes: the same one every time."""
        return self.private.sign(content)


def configured_key(variable: str) -> SigningKey | None:
    """Return the key in the file that a variable of the environment names; None if it is not set.

    Raises InputError as `read_key` does.
    """
    path = os.environ.get(variable)
    return read_key(variable, path) if path else None


def read_key(name: str, path: str) -> SigningKey:
    """Read a private key from a PEM file, of which `name` tells a person what names it.

    Raises InputError if others may read the file, or if it holds no plain Ed25519 key.
    """
    content = private_text(name, path).encode()
    try:
        found = load_pem_private_key(content, password=None)
    except TypeError:  # raised for a missing password alone
        raise InputError(
            f"{name}: the key is encrypted, and no password can be given; decrypt it with "
            "`openssl pkey`, into a file that nobody else may read"
        ) from None
    except (ValueError, UnsupportedAlgorithm):
        raise InputError(
            f"{name}: the file that it names holds no private key in PEM; {_GENERATE}"
        ) from None
    if not isinstance(found, Ed25519PrivateKey):
        raise InputError(f"{name}: the key is not one of Ed25519; {_GENERATE}")
    return SigningKey(found)


def read_public_key(name: str, path: str) -> str:
    """Read a public key from a PEM file; return its 32 bytes, hexadecimal.

    Raises InputError for a file that holds anything else, a private key included: a verifier of
    signatures should have none.
    """
    try:
        with open(path, "rb") as source:
            content = source.read()
    except OSError:
        raise InputError(f"{name}: {path} cannot be read") from None
    try:
        found = load_pem_public_key(content)
    except (ValueError, UnsupportedAlgorithm):
        private = " (it holds a private one)" if b"PRIVATE KEY" in content else ""
        raise InputError(
            f"{name}: {path} holds no public key in PEM{private}; {_EXTRACT}"
        ) from None
    if not isinstance(found, Ed25519PublicKey):
        raise InputError(f"{name}: {path} holds a key that is not one of Ed25519; {_GENERATE}")
    return found.public_bytes_raw().hex()


def is_signed(public: str, signature: bytes, content: bytes) -> bool:
    """Return whether a signature is by the private key of a public one, and of this content."""
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(public)).verify(signature, content)
    except (InvalidSignature, ValueError):  # the latter for bytes that are no key
        return False
    return True
