"""Files of keys that sign, as OpenSSL writes them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from quietcorpus.pipelines.environment.keys import (
    LEDGER_KEY,
    LEDGER_PUBLIC_KEY,
    RELEASE_KEY,
    SigningKey,
)

VARIABLES = (LEDGER_KEY, LEDGER_PUBLIC_KEY, RELEASE_KEY)


class KeyFiles:
    """A pair of files, of a key of its own unless one is given.

    Attributes:
        private: the path of the private key, which nobody else may read.
        public: the path of the public key.
        key: the key itself.
    """

    def __init__(self, folder: Path, name: str, key: PrivateKeyTypes | None = None) -> None:
        found = key or Ed25519PrivateKey.generate()
        self.private = str(private_file(folder / f"{name}.pem", found))
        self.public = str(folder / f"{name}.pub.pem")
        Path(self.public).write_bytes(
            found.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        )
        if isinstance(found, Ed25519PrivateKey):
            self.key = SigningKey(found)


def private_file(
    path: Path, key: PrivateKeyTypes, encryption: KeySerializationEncryption | None = None
) -> Path:
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption or NoEncryption())
    )
    return path


@contextmanager
def configured(**files: str) -> Iterator[None]:
    """Set the variables of these names, in lower case and without prefix, and unset the others."""
    with pytest.MonkeyPatch.context() as patch:
        for name in VARIABLES:
            patch.delenv(name, raising=False)
        for name, path in files.items():
            variable = f"QUIETCORPUS_{name.upper()}_FILE"
            assert variable in VARIABLES
            patch.setenv(variable, path)
        yield
