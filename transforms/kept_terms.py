"""The terms of the corpus, kept from the pass that counts them for the pass that releases them.

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

import itertools
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import IO

import numpy as np
import orjson
import pyarrow as pa

from quietcorpus.indexes.tokens.vocabulary import Vocabulary
from quietcorpus.mechanisms.keystream import ReleaseKey

from .reading.copies import Copies
from .reading.documents import Documents, Reject, Split, Terms
from .sealed import seal, unseal

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

    folder: str | None = None
    columns: tuple[str, ...] = ()

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


KEPT_NOWHERE = KeptTerms()


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
