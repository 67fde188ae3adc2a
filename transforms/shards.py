"""Shards: the units of a release. One shard is read, privatised and written by one worker."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import IO, Any, cast

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems
from apache_beam.pvalue import TaggedOutput

from mechanisms.keystream import Keystream
from transforms.documents import Documents, Reject, Split
from transforms.identifiers import Identifiers

# A shard is a 64th of the corpus, within these bounds: enough of them to keep workers busy, and
# files neither too many nor too large.
_SHARDS = 64
_SMALLEST_SHARD, _LARGEST_SHARD = 1 << 12, 1 << 17
TALLIES = "tallies"
ROW_GROUP_ROWS = 1 << 14


@dataclass(frozen=True)
class Shard:
    """The splits that become one data file."""

    number: int
    splits: tuple[Split, ...]


@dataclass(frozen=True)
class Written:
    """A file of the release, as it lies in the staging area."""

    path: str
    staged: str
    sha256: str
    rows: int


@dataclass(frozen=True)
class Tally:
    """How many records were read and how many rejected, with the first rejection.

    `known` says whether any text has a word of the vocabulary.
    """

    documents: int = 0
    rejected: int = 0
    first: Reject | None = None
    known: bool = False

    def add(self, batch: Documents) -> Tally:
        """Count one more batch."""
        return self + Tally(
            len(batch.texts), len(batch.rejects), batch.rejects[0] if batch.rejects else None
        )

    def __add__(self, other: Tally) -> Tally:
        firsts = [first for first in (self.first, other.first) if first]
        return replace(
            self,
            documents=self.documents + other.documents,
            rejected=self.rejected + other.rejected,
            first=min(firsts) if firsts else None,
            known=self.known or other.known,
        )


def data_file(number: int, shards: int) -> str:
    """The path of a shard's file in a release."""
    return f"data/part-{number:05d}-of-{shards:05d}.parquet"


def make_shards(splits: Sequence[Split], stream: Keystream) -> list[Shard]:
    """Group splits into shards, in an order that the key draws.

    The shards depend on the input and the key alone, never on the number of workers.
    """
    order = [int(stream.addresses(split.uri, [split.row_group], [b""])[0, 0]) for split in splits]
    total = sum(split.documents or 0 for split in splits)
    target = int(np.clip(total // _SHARDS, _SMALLEST_SHARD, _LARGEST_SHARD))
    groups: list[list[Split]] = []
    size = target
    for index in np.argsort(order, kind="stable"):
        split = splits[index]
        documents = target if split.documents is None else split.documents
        if size + documents > target:
            groups.append([])
            size = 0
        groups[-1].append(split)
        size += documents
    return [Shard(number, tuple(group)) for number, group in enumerate(groups)]


def write_tables(
    tables: Iterable[pa.Table], schema: pa.Schema, path: str, staging: str, **parquet: Any
) -> Written:
    """Write tables as the row groups of one Parquet file in the staging area.

    The staged name is this attempt's own, so that a retry or a speculative copy never writes into
    a file that another attempt is writing.
    """
    staged = f"{staging}/{path}.{uuid.uuid4().hex}"
    rows = 0
    with FileSystems.create(staged, compression_type=CompressionTypes.UNCOMPRESSED) as raw:
        sink = _Hashing(raw)
        file = pa.PythonFile(cast(IO[bytes], sink), mode="w")
        with pq.ParquetWriter(file, schema, compression="zstd", **parquet) as writer:
            for table in tables:
                writer.write_table(table, row_group_size=max(1, len(table)))
                rows += len(table)
    return Written(path, staged, sink.hexdigest(), rows)


def write_content(content: bytes, rows: int, path: str, staging: str) -> Written:
    """Write one file of another format in the staging area, under this attempt's own name."""
    staged = f"{staging}/{path}.{uuid.uuid4().hex}"
    with FileSystems.create(staged, compression_type=CompressionTypes.UNCOMPRESSED) as raw:
        raw.write(content)
    return Written(path, staged, hashlib.sha256(content).hexdigest(), rows)


class _Hashing:
    """A binary sink that knows the SHA-256 of what went through it."""

    def __init__(self, raw: IO[bytes]) -> None:
        self._raw = raw
        self._digest = hashlib.sha256()
        self.closed = False

    def write(self, data: bytes) -> int:
        self._digest.update(data)
        self._raw.write(data)
        return len(data)

    def flush(self) -> None:
        """Nothing to do: the file is closed by its owner."""

    def close(self) -> None:
        self.closed = True

    def hexdigest(self) -> str:
        return self._digest.hexdigest()


@dataclass
class Seen:
    """What one unit of work has found besides the texts."""

    identifiers: Identifiers
    tally: Tally = field(default_factory=Tally)
    rejects: list[Reject] = field(default_factory=list)

    def add(self, documents: Documents) -> None:
        """Note one batch."""
        self.identifiers.add(documents)
        self.tally = self.tally.add(documents)
        self.rejects += documents.rejects

    def add_words(self, *, known: bool) -> None:
        """Note whether a batch has a word of the vocabulary."""
        self.tally += Tally(known=known)

    def outputs(self) -> Iterator[TaggedOutput]:
        """The tally and the identifiers, tagged."""
        yield TaggedOutput(TALLIES, self.tally)
        yield from self.identifiers.outputs()


@dataclass(frozen=True)
class RejectLog:
    """Where rejects are recorded: position and reason, never content. None records nothing."""

    location: str | None = None

    def write(self, rejects: Sequence[Reject], name: str) -> None:
        """Record the rejects of one unit of work under its own name, so that a retry overwrites."""
        if not rejects or self.location is None:
            return
        uri = f"{self.location}/{name}.jsonl"
        with FileSystems.create(uri, compression_type=CompressionTypes.UNCOMPRESSED) as stream:
            for reject in rejects:
                stream.write(orjson.dumps(asdict(reject)) + b"\n")
