"""Public artefacts: read wherever they lie, and checked against the digest that the card states."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from ..errors import InputError, client_errors

_BLOCK = 1 << 22


@dataclass(frozen=True)
class FileSource:
    """A public file, named by a key of the spec.

    Attributes:
        key: the spec's key, for errors.
        uri: where it is.
        digest: the SHA-256 that it had when the release began, hexadecimal.
    """

    key: str
    uri: str
    digest: str

    @classmethod
    def resolve(cls, key: str, uri: str) -> FileSource:
        """Return the artefact as it is now; raises InputError if it cannot be read."""
        digest = hashlib.sha256()
        with (
            client_errors(f"{key}: {uri}", "cannot be read; check the path"),
            FileSystems.open(uri, compression_type=CompressionTypes.UNCOMPRESSED) as stream,
        ):
            while block := stream.read(_BLOCK):
                digest.update(block)
        return cls(key, uri, digest.hexdigest())

    def lines(self) -> Iterator[bytes]:
        """Yield the file's lines; raises InputError at the end if their digest has changed."""
        digest = hashlib.sha256()
        with (
            client_errors(f"{self.key}: {self.uri}", "cannot be read; check the path"),
            FileSystems.open(self.uri, compression_type=CompressionTypes.UNCOMPRESSED) as stream,
        ):
            for line in stream:
                digest.update(line)
                yield line
        if digest.hexdigest() != self.digest:
            raise InputError(f"{self.key}: {self.uri} has changed since the release began")

    def content(self) -> bytes:
        """Return the whole file; raises InputError if it has changed."""
        return b"".join(self.lines())
