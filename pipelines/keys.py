"""The master key: where it comes from, and how workers get at the release key.

The key is never part of a pipeline, an option, a spec or a log. Workers read it where the
launcher did, from the environment or a file, and prove by a fingerprint that they read the same.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from mechanisms.keystream import KEY_BYTES, ReleaseKey
from pipelines.version import environment_digest, software
from transforms.errors import InputError

VARIABLE = "QUIETCORPUS_MASTER_KEY"
FILE_VARIABLE = "QUIETCORPUS_MASTER_KEY_FILE"


def configured_master_key() -> bytes | None:
    """The master key that the environment names, or None; raises InputError for a bad one."""
    given = [name for name in (VARIABLE, FILE_VARIABLE) if os.environ.get(name)]
    if len(given) == 2:
        raise InputError(f"{VARIABLE} and {FILE_VARIABLE} are both set; set one of them")
    if not given:
        return None
    (name,) = given
    text = os.environ[name]
    if name == FILE_VARIABLE:
        try:
            text = Path(text).read_text(encoding="ascii")
        except (OSError, UnicodeDecodeError):
            raise InputError(
                f"{FILE_VARIABLE}: the file that it names cannot be read as text"
            ) from None
    try:
        key = bytes.fromhex(text.strip())
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise InputError(
            f"{name}: the master key is not {2 * KEY_BYTES} hexadecimal digits; make one with "
            "`openssl rand -hex 32`"
        )
    return key


def _said(versions: dict[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())


@contextmanager
def master_key(*, local: bool) -> Iterator[bytes]:
    """The configured master key, or a fresh one that lives as long as this run.

    A fresh key reaches local worker processes through the environment they inherit. Remote
    workers cannot see it, so there a key must be configured.
    """
    key = configured_master_key()
    if key is not None:
        yield key
        return
    if not local:
        raise InputError(
            f"{VARIABLE}: not set; workers on a cluster need the master key in their environment: "
            f"set {VARIABLE} or {FILE_VARIABLE} on the launcher and on every worker"
        )
    fresh = secrets.token_bytes(KEY_BYTES)
    os.environ[VARIABLE] = fresh.hex()
    try:
        yield fresh
    finally:
        del os.environ[VARIABLE]


@dataclass(frozen=True)
class WorkerKey:
    """Fetches the release key in a worker, and checks that key and code are the launcher's.

    Other code may draw by another law from the same stream, and two laws of one noise can tell
    more than either.
    """

    release: str
    fingerprint: str
    environment: str = field(default_factory=environment_digest)

    def __call__(self) -> ReleaseKey:
        if environment_digest() != self.environment:
            raise InputError(
                "workers: a worker has another quietcorpus than the launcher, or other versions of "
                f"what it runs on (it has {_said(software())}); install the same on both sides"
            )
        master = configured_master_key()
        if master is None:
            raise InputError(f"{VARIABLE}: not set in a worker; set it on every worker")
        key = ReleaseKey.derive(master, self.release)
        if key.fingerprint != self.fingerprint:
            raise InputError(f"{VARIABLE}: a worker has another master key than the launcher")
        return key
