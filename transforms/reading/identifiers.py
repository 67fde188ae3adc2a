"""Values that tell documents or users apart: one spelling each, and every id once.

One spelling for each value of a column that tells documents or users apart.

The files of a corpus, and the partitions of a ledger, may hold one id in columns of several types:
pandas writes whole numbers as floating-point ones where a value is missing. Arrow spells
12345678901 as `12345678901` and, in float64, as `1.2345678901e+10`. A UUID is text in one file
and, in another, the 16 bytes of Parquet's type.

The check that a corpus with an id column holds every document once.

A document that appears twice is released twice, and its passages are then protected at twice the
stated epsilon. Identifiers are compared by keyed 128-bit digests, in batches, not one by one.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from copy import copy
from decimal import Decimal

import apache_beam as beam
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems
from apache_beam.pvalue import TaggedOutput

from quietcorpus.mechanisms.keystream import Addresses, Keystream, ReleaseKey

from ..errors import InputError, StageError, cut, redacted
from ..sealed import seal, unseal
from ..sums import joined
from .documents import Documents

_EXACT = {16: 2.0**11, 32: 2.0**24, 64: 2.0**53}
"""By a type's bits, the first whole number that another one, the next, is rounded to."""

USER = "mechanism.user"
SPELLED = ("input.id", USER)
"""The keys of a spec whose columns are spelled."""
_UUID_BYTES = 16


def spelled(values: pa.ChunkedArray, key: str, column: str) -> list[str | None]:
    """Return each value as text, equal numbers alike whatever their type; None for null.

    Args:
        values: strings, bytes of UTF-8, whole numbers, booleans, numbers of another type, or bytes
            of one size.
        key: the key of the spec that names the column, for errors.
        column: its name.

    Raises:
        InputError: the type has several spellings, such as a timestamp; or a floating-point number
            is not whole, or so large that it may stand for several ids. It quotes no value.
    """
    kind = values.type
    if pa.types.is_dictionary(kind):
        return spelled(pc.cast(values, kind.value_type), key, column)
    if pa.types.is_floating(kind):
        return _spelled_floats(values, key, column)
    if pa.types.is_decimal(kind):
        return [None if one is None else plain_digits(one) for one in values.to_pylist()]
    if not has_spelling(kind):
        raise InputError(
            f"{key}: the column {cut(column)} is of type {kind}, and another file may write an "
            "equal value in another form; give strings or whole numbers"
        )
    found: list[str | None] = as_text(values).to_pylist()
    return found


def as_text(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return values of one file as text: those of 16 bytes as UUIDs, others of one size as digits.

    Equal values of another type may have another text; `spelled` has one for both.
    """
    if not pa.types.is_fixed_size_binary(values.type):
        return values.cast(pa.large_string())
    texts = [None if one is None else _spelled_bytes(one) for one in values.to_pylist()]
    return pa.chunked_array([pa.array(texts, pa.large_string())])


def has_spelling(kind: pa.DataType) -> bool:
    """Return whether `spelled` takes columns of a type."""
    types = pa.types
    if types.is_dictionary(kind) or isinstance(kind, pa.BaseExtensionType):
        return has_spelling(kind.value_type if types.is_dictionary(kind) else kind.storage_type)
    return any(
        is_of(kind)
        for is_of in (
            types.is_string,
            types.is_large_string,
            types.is_string_view,
            types.is_binary,
            types.is_large_binary,
            types.is_binary_view,
            types.is_fixed_size_binary,
            types.is_integer,
            types.is_floating,
            types.is_decimal,
            types.is_boolean,
            types.is_null,
        )
    )


def _spelled_bytes(value: bytes) -> str:
    """Return the text of a UUID, or the hexadecimal digits of values of another size."""
    return str(uuid.UUID(bytes=value)) if len(value) == _UUID_BYTES else value.hex()


def _spelled_floats(values: pa.ChunkedArray, key: str, column: str) -> list[str | None]:
    wide = values.cast(pa.float64())
    exact = pc.less(pc.abs(wide), _EXACT[values.type.bit_width])
    whole = pc.and_(exact, pc.equal(pc.trunc(wide), wide))  # false for NaN
    if not pc.all(whole, min_count=0).as_py():
        raise InputError(
            f"{key}: the column {cut(column)} has floating-point numbers that are not whole, or "
            "are too large to be exact, so that one may stand for several; give strings or whole "
            "numbers"
        )
    found: list[str | None] = wide.cast(pa.int64()).cast(pa.large_string()).to_pylist()
    return found


def plain_digits(value: Decimal) -> str:
    """Return a number without an exponent and without zeros at the end."""
    digits = format(value, "f")
    if "." in digits:
        digits = digits.rstrip("0").rstrip(".")
    return "0" if digits == "-0" else digits


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
