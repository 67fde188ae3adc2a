"""A corpus that names an id column holds every document once: the check.

A document that appears twice is released twice, and its passages are then protected at twice the
stated epsilon. Identifiers are compared by keyed 128-bit digests, in batches, not one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.pvalue import TaggedOutput

from mechanisms.keystream import Addresses, Keystream, ReleaseKey
from transforms.documents import Documents
from transforms.errors import InputError, redacted

TAG = "identifiers"
_BUCKET_BITS = 6


class Identifiers:
    """The digests of the ids that one unit of work has read."""

    def __init__(self, column: str | None, key: ReleaseKey) -> None:
        self._column = column
        self._stream: Keystream = key.stage("identifiers", b"")
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
    """Fails the job if any identifier occurs twice."""

    def __init__(self, column: str) -> None:
        super().__init__()
        self._column = column

    def expand(self, digests: beam.PCollection[tuple[int, bytes]]) -> beam.PCollection[int]:
        return digests | beam.GroupByKey() | beam.ParDo(_Compare(self._column))


class _Compare(beam.DoFn):
    def __init__(self, column: str) -> None:
        self._column = column

    @redacted
    def process(self, bucket: tuple[int, Iterable[bytes]]) -> Iterator[int]:
        digests = np.frombuffer(b"".join(bucket[1]), dtype="V16")
        repeated = len(digests) - len(np.unique(digests))
        if repeated:
            raise InputError(
                f"input.id: the column {self._column!r} repeats values (at least {repeated} "
                "times): a repeated document is released twice and protected half as well; keep "
                "each document once, or name no id column"
            )
        yield len(digests)
