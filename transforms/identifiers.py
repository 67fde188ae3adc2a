"""A corpus that names an id column holds every document once: the check.

A document that appears twice is released twice, and its passages are then protected at twice the
stated epsilon. Identifiers are compared by keyed 128-bit digests, in batches, not one by one.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable, Iterator

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems
from apache_beam.pvalue import TaggedOutput

from mechanisms.keystream import Addresses, Keystream, ReleaseKey
from transforms.documents import Documents
from transforms.errors import InputError, redacted

TAG = "identifiers"
DIGEST_BYTES = 16
DIGEST = f"V{DIGEST_BYTES}"
_PLAIN = CompressionTypes.UNCOMPRESSED
_BUCKET_BITS = 6


class Identifiers:
    """The digests of the ids that one unit of work has read."""

    def __init__(self, column: str | None, key: ReleaseKey) -> None:
        self._column = column
        self._stream: Keystream = key.identifying()
        self._digests: list[Addresses] = []

    def add(self, documents: Documents) -> None:
        """Note the ids of a batch."""
        if self._column is None or not len(documents.rows):
            return
        values = documents.columns[self._column].cast(pa.large_string()).to_pylist()
        raw = (b"" if value is None else b"=" + value.encode() for value in values)
        self._digests.append(self._stream.addresses("", [0] * len(values), raw))

    def outputs(self) -> Iterator[TaggedOutput]:
        """(bucket, digests) pairs, so that the buckets can be compared apart."""
        if not self._digests:
            return
        digests = np.concatenate(self._digests)
        buckets = digests[:, 0] >> np.uint64(64 - _BUCKET_BITS)
        for bucket in np.unique(buckets):
            yield TaggedOutput(TAG, (int(bucket), digests[buckets == bucket].tobytes()))


class RefuseRepeated(beam.PTransform):
    """Fails the job if any identifier occurs twice; keeps the digests in a folder, if one is given.

    They are 16 bytes each, sorted, a file for each bucket and attempt, named by its SHA-256.
    """

    def __init__(self, column: str, folder: str | None = None) -> None:
        super().__init__()
        self._column = column
        self._folder = folder

    def expand(self, digests: beam.PCollection[tuple[int, bytes]]) -> beam.PCollection[int]:
        return digests | beam.GroupByKey() | beam.ParDo(_Compare(self._column, self._folder))


def kept(folder: str) -> bytes:
    """The digests that `RefuseRepeated` kept, sorted; what an attempt left half-written is not."""
    (found,) = FileSystems.match([f"{folder}/*"])
    parts: dict[str, bytes] = {}
    for metadata in found.metadata_list:
        name = metadata.path.rpartition("/")[2]
        with FileSystems.open(metadata.path, compression_type=_PLAIN) as file:
            content = file.read()
        if name.split(".")[0] == hashlib.sha256(content).hexdigest():
            parts[name.split(".")[0]] = content
    return np.unique(np.frombuffer(b"".join(parts.values()), dtype=DIGEST)).tobytes()


class _Compare(beam.DoFn):
    def __init__(self, column: str, folder: str | None) -> None:
        self._column = column
        self._folder = folder

    @redacted
    def process(self, bucket: tuple[int, Iterable[bytes]]) -> Iterator[int]:
        digests = np.frombuffer(b"".join(bucket[1]), dtype=DIGEST)
        different = np.unique(digests)
        repeated = len(digests) - len(different)
        if repeated:
            raise InputError(
                f"input.id: the column {self._column!r} repeats values (at least {repeated} "
                "times): a repeated document is released twice and protected half as well; keep "
                "each document once, or name no id column"
            )
        if self._folder is not None:
            content = different.tobytes()
            uri = f"{self._folder}/{hashlib.sha256(content).hexdigest()}.{uuid.uuid4().hex}"
            with FileSystems.create(uri, compression_type=_PLAIN) as file:
                file.write(content)
        yield len(digests)
