"""The check that a corpus with an id column holds every document once.

A document that appears twice is released twice, and its passages are then protected at twice the
stated epsilon. Identifiers are compared by keyed 128-bit digests, in batches, not one by one.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from copy import copy

import apache_beam as beam
import numpy as np
import numpy.typing as npt
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems
from apache_beam.pvalue import TaggedOutput

from quietcorpus.mechanisms.keystream import Addresses, Keystream, ReleaseKey

from ..errors import InputError, StageError, cut, redacted
from ..parts import joined
from ..sealed import seal, unseal
from .documents import Documents
from .spelling import spelled

TAG = "identifiers"
DIGEST_BYTES = 16
DIGEST = f"V{DIGEST_BYTES}"
_PLAIN = CompressionTypes.UNCOMPRESSED
_BUCKET_BITS = 6
_Part = tuple[int, bytes]
"""The number of a unit of work, and the digests of its ids."""

Covered = npt.NDArray[np.uint64]
"""The documents that a sum holds, uint64 (3,): their number, and the sum of their ids' digests.

All sums are modulo 2^64, word by word.
"""


def covered(digests: Addresses) -> Covered:
    """Return what documents with these ids' digests add to `Covered`."""
    total: Covered = np.array([len(digests), *digests.sum(axis=0, dtype=np.uint64)], np.uint64)
    return total


class Identifiers:
    """The digests of the ids that one unit of work has read."""

    def __init__(self, column: str | None, key: ReleaseKey, part: int) -> None:
        """Start without ids; `part` is the number of the unit of work."""
        self._column = column
        self._part = part
        self._stream: Keystream | None = None if column is None else key.identifying(column)
        self._digests: list[Addresses] = []

    def add(self, documents: Documents) -> None:
        """Record the ids of a batch."""
        if self._column is None or self._stream is None or not len(documents.rows):
            return
        if documents.ids is not None:
            size = len(documents.ids)
            self._digests.append(self._stream.addresses("", [0] * size, documents.ids))
            return
        values = spelled(documents.columns[self._column], "input.id", self._column)
        # The "=" tells an empty id from a missing one.
        raw = (b"" if value is None else b"=" + value.encode() for value in values)
        self._digests.append(self._stream.addresses("", [0] * len(values), raw))

    @property
    def digests(self) -> Addresses:
        """Return the digests of all ids so far, uint64 (n, 2)."""
        return np.concatenate([np.empty((0, 2), np.uint64), *self._digests])

    def with_digests(self, digests: Addresses) -> Identifiers:
        """Return the same with these digests, as another try of this work has recorded them."""
        found = copy(self)
        found._digests = [digests] if len(digests) else []
        return found

    def outputs(self) -> Iterator[TaggedOutput]:
        """Yield (bucket, (part, digests)) pairs, so that buckets can be compared separately."""
        digests = self.digests
        buckets = digests[:, 0] >> np.uint64(64 - _BUCKET_BITS)
        for bucket in np.unique(buckets):
            yield TaggedOutput(
                TAG, (int(bucket), (self._part, digests[buckets == bucket].tobytes()))
            )


class RefuseRepeated(beam.PTransform):
    """A PTransform that fails the job if any identifier occurs twice.

    It keeps the digests in a folder, if one is given: 16 bytes each, sorted, in a sealed file for
    each bucket and attempt, which is named after the bucket.

    Its output is the number of ids in each bucket, and their digests' sum.
    """

    def __init__(
        self,
        column: str,
        key: Callable[[], ReleaseKey],
        folder: str | None = None,
        *,
        named: str = "input.id",
        remedy: str = "keep each document once",
    ) -> None:
        """Configure the check; `named` and `remedy` are the beginning and the end of its error."""
        super().__init__()
        self._compare = _Compare(column, key, folder, named, remedy)

    def expand(self, digests: beam.PCollection[tuple[int, _Part]]) -> beam.PCollection[Covered]:
        return digests | beam.GroupByKey() | beam.ParDo(self._compare)


def kept(folder: str, key: ReleaseKey) -> bytes:
    """Return the digests that `RefuseRepeated` kept, sorted; half-written files are left out."""
    (found,) = FileSystems.match([f"{folder}/*"])
    parts = []
    for metadata in found.metadata_list:
        with FileSystems.open(metadata.path, compression_type=_PLAIN) as file:
            sealed = file.read()
        with suppress(StageError):
            parts.append(unseal(sealed, metadata.path, key))
    return np.unique(np.frombuffer(b"".join(parts), dtype=DIGEST)).tobytes()


class _Compare(beam.DoFn):
    def __init__(
        self,
        column: str,
        key: Callable[[], ReleaseKey],
        folder: str | None,
        named: str,
        remedy: str,
    ) -> None:
        self._column = column
        self._key = key
        self._folder = folder
        self._named = named
        self._remedy = remedy

    @redacted
    def process(self, bucket: tuple[int, Iterable[_Part]]) -> Iterator[Covered]:
        parts = list(bucket[1])
        joined((part,) for part, _ in parts)  # a part that the engine doubled is not a repeated id
        digests = np.frombuffer(b"".join(own for _, own in parts), dtype=DIGEST)
        different = np.unique(digests)
        repeated = len(digests) - len(different)
        if repeated:
            raise InputError(
                f"{self._named}: the column {cut(self._column)} repeats values (at least "
                f"{repeated} times): a repeated document is released twice and protected half as "
                f"well; {self._remedy}"
            )
        if self._folder is not None:
            uri = f"{self._folder}/{bucket[0]:02d}.{uuid.uuid4().hex}"
            with FileSystems.create(uri, compression_type=_PLAIN) as file:
                file.write(seal(different.tobytes(), uri, self._key()))
        yield covered(digests.view("<u8").reshape(-1, 2))
