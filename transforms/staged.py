"""Files that a pass leaves in the staging area for a later pass or run.

Finished shards: a record of each, by which a repetition of its run keeps the shard.

A run that is killed leaves sealed data files in its staging area. Noise is keyed by position, so a
shard's bytes are a function of the run's identity, the shard's splits and the codebook, whatever
the engine, the number of workers and the try. When a shard's file is written, a record of it is
left in the staging area: what the shard adds to the checks of the whole corpus (the tally, the
rejects and the ids' digests), and its file's place and digest. A repetition takes them from there
instead of reading the documents, and makes every shard again of which that cannot be proved.

Guarantee:
    A shard is kept only if its record and its data file were sealed under the release key, by a run
    of this identity, for these splits and this codebook. All of that is associated data of the
    record's seal (AES-256-GCM, `sealed`), with the record's own name, which no other try has; the
    record holds the SHA-256 of the data file, which is read whole.

    So an attacker who can write to the staging area, and has no key, decides at most which shards
    are made again. They cannot change what is released: a change, a truncation, a file under
    another's name or of another run does not open, and a file that opens holds the bytes that this
    run would make. Nor do they get another draw of any noise, since a shard that is made again is
    the same.

    A key that is drawn afresh for one run opens nothing that another one has left.

The terms of the corpus, kept from the pass that counts them for the pass that releases them.

A histogram is released before the first document, so that a release with one goes over the corpus
twice. The first pass leaves the terms of each split in a file of the staging area, and the second
one reads them in place of the texts. A file holds all that the second pass takes from a text: its
numbers of terms and tokens, its record's number and other columns, the rejects, and the copies of
the text in kept columns.

Guarantee:
    Terms are used only if they were sealed under the release key, for this split and vocabulary, by
    this try of this run: the name to which the seal (`sealed`) is bound holds all of that. An
    attacker who can write to the staging area, and has no key, can at most end the run, or have it
    read the texts again.

    A file's size tells how many tokens a split has, which the release does not. So terms are kept
    only in a staging area on a file system, which no other user can enter. Each file is deleted
    when its shard is written, and the others with the staging area.

    The release does not depend on what is kept: without a file, the texts are read again.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import os
import re
import shutil
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from typing import IO, Any

import numpy as np
import orjson
import pyarrow as pa
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from quietcorpus.indexes.tokens.vocabulary import Terms, Vocabulary
from quietcorpus.mechanisms.encoding import encode
from quietcorpus.mechanisms.keystream import ReleaseKey

from .errors import StageError
from .reading.copies import Copies
from .reading.documents import Documents, Reject, Split
from .sealed import seal, unseal, wide
from .shards import Seen, Shard, Tally, Written, staged_content

_PLAIN = CompressionTypes.UNCOMPRESSED
_NAME = re.compile(r"([0-9]{5,9})\.[0-9a-f]{32}")


def records_in(staging: str, identity: str) -> str:
    """Return the folder, in a staging area, of the records of the runs of an identity."""
    return f"{staging}/finished/{identity}"


def with_records(shards: Iterable[Shard], records: Iterable[str]) -> list[Shard]:
    """Return shards, each with those of these records that are named after it."""
    named: dict[int, list[str]] = {}
    for uri in records:
        if found := _NAME.fullmatch(uri.rpartition("/")[2]):
            named.setdefault(int(found[1]), []).append(uri)
    return [replace(shard, records=tuple(named.get(shard.number, ()))) for shard in shards]


@dataclass(frozen=True)
class FinishedShards:
    """The records of the shards that a run finishes.

    Attributes:
        staging: the staging area of the run.
        identity: the run's identity, a keyed digest of all that its bytes depend on.
        earlier: the staging areas of earlier tries, of which shards may be kept.
    """

    staging: str
    identity: str
    earlier: tuple[str, ...] = ()

    def record(
        self, shard: Shard, codebook: str | None, made: Written, seen: Seen, key: ReleaseKey
    ) -> None:
        """Leave the record of a shard whose data file is written.

        `codebook` is the digest of all that the shard was made with, besides the spec.
        """
        uri = f"{records_in(self.staging, self.identity)}/{shard.number:05d}.{uuid.uuid4().hex}"
        sealed = seal(_content(made, seen), self._name(uri, shard, codebook), key)
        with FileSystems.create(uri, compression_type=_PLAIN) as stream:
            stream.write(sealed)

    def kept(
        self, shard: Shard, codebook: str | None, path: str, seen: Seen, key: ReleaseKey
    ) -> tuple[Written, Seen] | None:
        """Return a shard's data file and what was seen of it, or None if it is to be made.

        Args:
            shard: the shard, with the records that may be its own.
            codebook: as `record` takes it.
            path: the data file's in the release.
            seen: the values seen before any document is read.
            key: the release key.
        """
        for uri in shard.records:
            # Whatever is wrong with a record, with its file or their store: the shard is made.
            with suppress(Exception):
                with FileSystems.open(uri, compression_type=_PLAIN) as stream:
                    sealed = stream.read()
                content = unseal(sealed, self._name(uri, shard, codebook), key)
                written, found = _restored(content, path, seen)
                for _ in staged_content(written, key):
                    pass
                return written, found
        return None

    def _name(self, uri: str, shard: Shard, codebook: str | None) -> str:
        """Return the name to which a record's seal is bound."""
        bound = encode(
            {
                "identity": self.identity,
                "shard": shard.number,
                "splits": [asdict(split) for split in shard.splits],
                "codebook": codebook,
            }
        )
        return f"{uri} {hashlib.sha256(bound).hexdigest()}"


def _content(made: Written, seen: Seen) -> bytes:
    """Return a record's content, whose length tells nothing of the texts."""
    return orjson.dumps(
        {
            "staged": made.staged,
            "sha256": made.sha256,
            "rows": wide(made.rows),
            "tally": replace(seen.tally, parts=()).encoded(),
            "rejects": seen.rejects,
            "identifiers": base64.b64encode(seen.identifiers.digests.tobytes()).decode(),
        }
    )


def _restored(content: bytes, path: str, seen: Seen) -> tuple[Written, Seen]:
    """Return what `_content` was given; raises StageError for a file that is not of a whole shard.

    The splits that were read are not taken from a record: its seal is bound to them.
    """
    fields: dict[str, Any] = orjson.loads(content)
    tally = seen.tally + Tally.decoded(fields["tally"])
    written = Written(path, fields["staged"], fields["sha256"], int(fields["rows"]))
    if written.rows != tally.documents:
        raise StageError(f"{path}: the staged file has not a row for every document")
    digests = np.frombuffer(base64.b64decode(fields["identifiers"]), np.uint64).reshape(-1, 2)
    identifiers = seen.identifiers.with_digests(digests)
    return written, Seen(identifiers, tally, [Reject(**one) for one in fields["rejects"]])


_ROW, _TOKENS, _TERMS = "\0row", "\0tokens", "\0terms"  # no column of a corpus is called so
_SHORT = 1 << 16
_FREE_BYTES, _FREE_SHARE = 10 << 30, 0.2  # the lesser of them is left to the release
_LENGTH_BYTES = 8


@dataclass(frozen=True)
class KeptTerms:
    """The place of the terms that one try of a run keeps.

    Attributes:
        folder: a folder of the staging area, on a file system that all workers see; None keeps
            nothing.
        columns: the kept columns, in which copies of the text are counted.
    """

    folder: str | None
    columns: tuple[str, ...]

    @contextmanager
    def keeping(self, split: Split, vocabulary: Vocabulary, key: ReleaseKey) -> Iterator[Keeper]:
        """Keep the terms of the batches that the `Keeper` is given; they are all of a split's.

        None are kept where the disk is full, or would be.
        """
        path = self._path(split)
        own = f"{path}.{os.urandom(8).hex()}"  # another worker may read the same split
        raw = _opened(own) if self.folder else None
        keeper = Keeper(raw, self._name(split, vocabulary), key, len(vocabulary), self.columns)
        try:
            yield keeper
            keeper.end()
        finally:
            if raw is not None:
                with suppress(OSError):
                    raw.close()
                with suppress(OSError):
                    if keeper.whole:
                        os.replace(own, path)
                    else:
                        os.remove(own)

    def read(
        self, split: Split, vocabulary: Vocabulary, key: ReleaseKey
    ) -> Iterator[tuple[Documents, Copies]] | None:
        """Read the batches of a split, with the copies of the text in each; None if it is not kept.

        Reading raises StageError for a file that is not what was kept.
        """
        if self.folder is None:
            return None
        try:
            raw = open(self._path(split), "rb")  # noqa: SIM115
        except FileNotFoundError:
            return None
        return _batches(raw, self._name(split, vocabulary), key, split)

    def forget(self, split: Split) -> None:
        """Delete the terms of a split; nothing happens if there are none."""
        with suppress(OSError):
            os.remove(self._path(split))

    def _path(self, split: Split) -> str:
        return f"{self.folder}/{split.number:06d}"

    def _name(self, split: Split, vocabulary: Vocabulary) -> str:
        return f"{self._path(split)} {vocabulary.digest} {vocabulary.tokenizer.law}"


KEPT_NOWHERE = KeptTerms(None, ())


class Keeper:
    """The writer of one split's terms.

    Attributes:
        whole: whether the file holds all that was added, and ends.
    """

    def __init__(
        self,
        raw: IO[bytes] | None,
        name: str,
        key: ReleaseKey,
        terms: int,
        columns: tuple[str, ...],
    ) -> None:
        self._raw, self._name, self._key = raw, name, key
        self._columns = columns
        self._type = np.dtype(np.uint16 if terms <= _SHORT else np.int32)
        self._number = 0
        self.whole = False

    def add(self, documents: Documents, terms: Terms) -> None:
        """Add a batch and its terms."""
        if self._raw is not None:
            self._write(_encoded(documents, terms, self._type, self._columns))

    def end(self) -> None:
        """End the file."""
        if self._raw is not None:
            self._write(b"")
            self.whole = self._raw is not None

    def _write(self, content: bytes) -> None:
        assert self._raw is not None
        sealed = seal(content, f"{self._name} {self._number}", self._key)
        self._number += 1
        try:
            self._raw.write(len(sealed).to_bytes(_LENGTH_BYTES, "big") + sealed)
            if not content:
                self._raw.flush()
        except OSError:  # the disk is full, for instance
            self._raw = None


def _opened(path: str) -> IO[bytes] | None:
    """Open a new file, unless the disk is nearly full."""
    folder = os.path.dirname(path)
    with suppress(OSError):
        os.makedirs(folder, exist_ok=True)
        disk = shutil.disk_usage(folder)
        if disk.free > min(_FREE_BYTES, _FREE_SHARE * disk.total):
            return open(path, "wb")
    return None


def _batches(
    raw: IO[bytes], name: str, key: ReleaseKey, split: Split
) -> Iterator[tuple[Documents, Copies]]:
    with raw:
        whole = os.fstat(raw.fileno()).st_size
        for number in itertools.count():
            size = int.from_bytes(raw.read(_LENGTH_BYTES), "big")
            sealed = raw.read(min(size, whole))  # a changed length may be any
            content = unseal(sealed, f"{name} {number}", key)
            if not content:
                return
            yield _decoded(content, split)


def _encoded(
    documents: Documents, terms: Terms, numbers: np.dtype, columns: tuple[str, ...]
) -> bytes:
    told = {
        "rejects": orjson.dumps([asdict(reject) for reject in documents.rejects]),
        "copies": orjson.dumps(asdict(Copies.of(documents, columns))),
    }
    known = pa.array(terms.numbers.astype(numbers))
    named = {
        _ROW: pa.array(documents.rows),
        _TOKENS: pa.array(terms.tokens),
        _TERMS: pa.LargeListArray.from_arrays(pa.array(terms.offsets), known),
    }
    for name in documents.columns.column_names:
        named[name] = documents.columns[name].combine_chunks()
    batch = pa.RecordBatch.from_arrays([*named.values()], names=[*named])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch, custom_metadata=told)
    return bytes(sink.getvalue().to_pybytes())


def _decoded(content: bytes, split: Split) -> tuple[Documents, Copies]:
    with pa.ipc.open_stream(content) as reader:
        batch, told = reader.read_next_batch_with_custom_metadata()
    known = batch.column(_TERMS)
    terms = Terms(
        known.offsets.to_numpy(),
        known.values.to_numpy().astype(np.int32),
        batch.column(_TOKENS).to_numpy(),
    )
    own = [name for name in batch.schema.names if name not in (_ROW, _TOKENS, _TERMS)]
    documents = Documents(
        split.uri,
        batch.column(_ROW).to_numpy(),
        pa.array([""], pa.large_string()).take(pa.array(np.zeros(len(batch), np.int64))),
        pa.table({name: batch.column(name) for name in own}),
        [Reject(**reject) for reject in orjson.loads(told[b"rejects"])],
        terms=terms,
    )
    return documents, Copies(**orjson.loads(told[b"copies"]))
