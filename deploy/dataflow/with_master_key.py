"""Fetch the master key from Secret Manager into memory, then become another program.

`with_master_key.py PROGRAM [ARGUMENT...]`: the version that $QUIETCORPUS_MASTER_KEY_SECRET names is
read by this machine's service account, written to a file that this user alone can read, on a file
system in memory, and named to PROGRAM by $QUIETCORPUS_MASTER_KEY_FILE. A failure ends the container
before it has seen any data, without a word of the key.
"""

from __future__ import annotations

import os
import sys
import tempfile

SECRET = "QUIETCORPUS_MASTER_KEY_SECRET"  # noqa: S105 - a variable's name
MEMORY = "/dev/shm"  # noqa: S108 - a tmpfs: nothing reaches a disk
PATIENCE_SECONDS = 60


def fetched(name: str) -> bytes:
    """Return the secret's content; its checksum must be right."""
    import google_crc32c
    from google.cloud import secretmanager

    client = secretmanager.SecretManagerServiceClient()
    answer = client.access_secret_version(name=name, timeout=PATIENCE_SECONDS)
    content = bytes(answer.payload.data)
    if int(google_crc32c.value(content)) != answer.payload.data_crc32c:
        raise ValueError("the checksum is wrong")
    return content


def stored(content: bytes) -> str:
    """Write the content to a file in memory, mode 0600 in a 0700 folder, and return its path."""
    path = os.path.join(tempfile.mkdtemp(prefix="quietcorpus-", dir=MEMORY), "master-key")
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as sink:
        sink.write(content)
    return path


def main(program: list[str]) -> None:
    """Fetch, store, and become the program."""
    name = os.environ.get(SECRET, "")
    if not name.startswith("projects/") or name.endswith("/latest"):
        sys.exit(f"quietcorpus: error: {SECRET}: name one version, projects/P/secrets/S/versions/1")
    try:
        os.environ["QUIETCORPUS_MASTER_KEY_FILE"] = stored(fetched(name))
    except Exception as error:  # its message may tell more than its type
        sys.exit(f"quietcorpus: error: {SECRET}: {name} cannot be read ({type(error).__name__})")
    os.environ.pop("QUIETCORPUS_MASTER_KEY", None)
    os.execvp(program[0], program)  # noqa: S606 - the image's own entry point


if __name__ == "__main__":
    main(sys.argv[1:])
