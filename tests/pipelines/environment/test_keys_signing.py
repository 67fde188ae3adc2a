"""Keys that sign: what is read from a file, and what is told of a file that holds no such key."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed448, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption
from signing_keys import KeyFiles, configured, private_file

from quietcorpus.pipelines.environment.keys import (
    LEDGER_KEY,
    configured_key,
    is_signed,
    read_public_key,
)
from quietcorpus.transforms.errors import InputError


def test_a_pair_that_openssl_makes(tmp_path: Path) -> None:
    # Kills: a form of keys, or of signatures, that is ours alone.
    private, public = tmp_path / "key.pem", tmp_path / "key.pub.pem"
    for arguments in (
        ["genpkey", "-algorithm", "ed25519", "-out", private],
        ["pkey", "-in", private, "-pubout", "-out", public],
    ):
        subprocess.run(["openssl", *arguments], check=True)
    private.chmod(0o600)
    with configured(ledger_key=str(private)):
        key = configured_key(LEDGER_KEY)
    assert key is not None
    assert key.public == read_public_key("key", str(public))
    signature = key.sign(b"content")
    assert signature == key.sign(b"content")
    (tmp_path / "signature").write_bytes(signature)
    (tmp_path / "content").write_bytes(b"content")
    check = ["pkeyutl", "-verify", "-rawin", "-pubin", "-inkey", public]
    files = ["-sigfile", tmp_path / "signature", "-in", tmp_path / "content"]
    subprocess.run(["openssl", *check, *files], check=True, stdout=subprocess.DEVNULL)


def test_no_key_is_configured(tmp_path: Path) -> None:
    with configured():
        assert configured_key(LEDGER_KEY) is None
    with configured(ledger_key=""):
        assert configured_key(LEDGER_KEY) is None


def test_a_signature_is_of_one_content_and_one_key(tmp_path: Path) -> None:
    # Kills: a check that takes any signature, or one of other bytes.
    one, other = (KeyFiles(tmp_path, name).key for name in ("one", "other"))
    signature = one.sign(b"content")
    assert is_signed(one.public, signature, b"content")
    assert not is_signed(other.public, signature, b"content")
    assert not is_signed(one.public, signature, b"content ")
    for position in range(len(signature)):
        changed = bytearray(signature)
        changed[position] ^= 1
        assert not is_signed(one.public, bytes(changed), b"content")
    for wrong in (b"", signature[:-1], signature + b"\0"):
        assert not is_signed(one.public, wrong, b"content")


def test_nothing_shows_a_private_key(tmp_path: Path) -> None:
    # Kills: a key in a message, by the representation of what holds it.
    key = KeyFiles(tmp_path, "key").key
    secret = key.private.private_bytes_raw()
    for shown in (repr(key), str(key), f"{key}"):
        assert secret.hex() not in shown
        assert repr(secret) not in shown
        assert "private" not in shown.lower()


def encrypted(path: Path) -> None:
    private_file(path, Ed25519PrivateKey.generate(), BestAvailableEncryption(b"password"))


def open_to_others(path: Path) -> None:
    private_file(path, Ed25519PrivateKey.generate()).chmod(0o644)


def text(content: str) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.touch(mode=0o600)
        path.write_text(content)

    return write


def public_alone(path: Path) -> None:
    text(Path(KeyFiles(path.parent, "other").public).read_text())(path)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda path: None, "cannot be read as text"),
        (text(""), "holds no private key in PEM"),
        (text("0" * 64), "holds no private key in PEM"),
        (text("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"), "holds no priv"),
        (public_alone, "holds no private key in PEM"),
        (lambda path: private_file(path, rsa.generate_private_key(65537, 2048)), "not one of Ed2"),
        (lambda path: private_file(path, ec.generate_private_key(ec.SECP256R1())), "not one of Ed"),
        (lambda path: private_file(path, ed448.Ed448PrivateKey.generate()), "not one of Ed25519"),
        (encrypted, "the key is encrypted, and no password"),
        (open_to_others, "users other than its owner may read or change"),
    ],
)
def test_a_file_that_holds_no_key_to_sign_by(
    tmp_path: Path, make: Callable[[Path], object], said: str
) -> None:
    # Kills: each check of a private key's file, and a trace in place of a line.
    make(tmp_path / "key.pem")
    with (
        configured(ledger_key=str(tmp_path / "key.pem")),
        pytest.raises(InputError, match=f"^{LEDGER_KEY}: .*{said}") as caught,
    ):
        configured_key(LEDGER_KEY)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda path: None, "cannot be read"),
        (text("hello"), "holds no public key in PEM;"),
        (
            lambda path: private_file(path, Ed25519PrivateKey.generate()),
            r"holds no public key in PEM \(it holds a private one\);",
        ),
        (
            lambda path: Path(
                KeyFiles(path.parent, "rsa", rsa.generate_private_key(65537, 2048)).public
            ).rename(path),
            "a key that is not one of Ed25519",
        ),
    ],
)
def test_a_file_that_holds_no_key_to_check_by(
    tmp_path: Path, make: Callable[[Path], object], said: str
) -> None:
    # Kills: a private key that is handed to who checks, and another key's type.
    make(tmp_path / "key.pem")
    with pytest.raises(InputError, match=f"^public key: .*{said}") as caught:
        read_public_key("public key", str(tmp_path / "key.pem"))
    assert "\n" not in str(caught.value)
