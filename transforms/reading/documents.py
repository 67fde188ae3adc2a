"""A corpus as the transforms see it: splits of files, and batches of documents.

A document's position is its file and its record number in it, whatever the number of workers; a
retry sees the same one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from quietcorpus.mechanisms.encoding import Value, encode

BATCH_DOCUMENTS = 1024
BATCH_BYTES = 1 << 25
_READING = 1  # the version of what makes a record a document; whoever changes that raises it


@dataclass(frozen=True)
class Corpus:
    """Where the documents are and which of their fields matter.

    Attributes:
        pattern: a path, glob or object-store URI.
        text: the column of the text (ignored for text files).
        id: a column whose values must be unique, or None.
        keep: columns that are copied to the release as they are.
        also: further columns that the mechanism reads, each with the spec's key that names it.
    """

    pattern: str
    text: str = "text"
    id: str | None = None
    keep: tuple[str, ...] = ()
    also: tuple[tuple[str, str], ...] = ()

    @property
    def others(self) -> list[tuple[str, str]]:
        """The columns besides the text, each with the spec's key that names it."""
        return [*(("input.keep", name) for name in self.keep), *self.compared]

    @property
    def compared(self) -> list[tuple[str, str]]:
        """Those of them whose values are compared, and not copied."""
        return [*([("input.id", self.id)] if self.id else []), *self.also]

    @property
    def columns(self) -> list[str]:
        """The columns that are read besides the text."""
        return list(dict.fromkeys(name for _, name in self.others))


@dataclass(frozen=True)
class Split:
    """A part of one file that one worker reads from end to end; `number` is its place in a plan."""

    uri: str
    format: str
    row_group: int = 0
    first_row: int = 0
    documents: int | None = None
    batch_documents: int = BATCH_DOCUMENTS
    number: int = 0

    @property
    def name(self) -> str:
        """A file name of its own for this split."""
        digest = hashlib.sha256(self.uri.encode()).hexdigest()[:16]
        return f"{digest}-{self.row_group:05d}"


@dataclass(frozen=True, order=True)
class Reject:
    """A record that cannot be read: where it is, and why, without its content."""

    source: str
    row: int
    reason: str


@dataclass(frozen=True)
class Documents:
    """A batch of documents.

    Attributes:
        source: the file's URI.
        rows: int64 (n,); record numbers in the file.
        texts: large_string (n,), valid UTF-8, no nulls.
        columns: the other columns of the corpus, n rows.
        rejects: the unreadable records met on the way.
    """

    source: str
    rows: npt.NDArray[np.int64]
    texts: pa.LargeStringArray
    columns: pa.Table
    rejects: list[Reject] = field(default_factory=list)

    def parts(self, size: int) -> Iterator[Documents]:
        """The batch's documents, without its rejects, in parts of at most `size`."""
        for start in range(0, len(self.rows), size):
            yield Documents(
                self.source,
                self.rows[start : start + size],
                self.texts.slice(start, size),
                self.columns.slice(start, size),
            )


@dataclass(frozen=True)
class FileState:
    """What tells a file from any other, and from itself before a change.

    Attributes:
        uri: where it is.
        size: in bytes.
        changed: when, in seconds, as its file system says.
        checksum: of its content, on a store that keeps one; of a local file, what changes with any
            change of it: its number, and when it was last touched.
    """

    uri: str
    size: int
    changed: float
    checksum: str


@dataclass(frozen=True)
class Plan:
    """The splits of a corpus, in file order, and the types of its other columns."""

    splits: list[Split]
    schema: pa.Schema
    files: tuple[FileState, ...] = ()

    @property
    def documents(self) -> int | None:
        """The number of records, where every file tells it beforehand."""
        counts = [split.documents for split in self.splits]
        return sum(filter(None, counts)) if None not in counts else None

    def corpus_digest(self, corpus: Corpus) -> bytes:
        """SHA-256 of what tells this corpus from any other.

        That is where its files are, their sizes and states, how they are divided, and which columns
        are read: a record is a document if all of them are readable. The same corpus at the same
        place has the same digest, and a moved or an altered one another.
        """
        files = [(file.uri, file.size, file.changed, file.checksum) for file in self.files]
        splits = [
            (split.uri, split.format, split.row_group, split.first_row, split.documents)
            for split in self.splits
        ]
        columns = sorted(corpus.columns)
        read: dict[str, Value] = {"version": _READING, "text": corpus.text, "columns": columns}
        return hashlib.sha256(encode({"read": read, "files": files, "splits": splits})).digest()


def missing_column(key: str, column: str, uri: str, columns: list[str] | None = None) -> str:
    """The error for a column that a file lacks.

    `columns` may be listed where a schema names them; what a CSV or JSON Lines file seems to name
    columns may be private text (a file without a header, a record keyed by content).
    """
    if columns is None:
        return (
            f"{key}: {uri} has no column {column!r}; check the spelling, and that a CSV file "
            "begins with its column names"
        )
    return f"{key}: {uri} has no column {column!r}; it has {', '.join(map(repr, columns))}"
