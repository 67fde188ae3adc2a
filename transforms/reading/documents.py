"""A corpus as the transforms see it: splits of files, and batches of documents.

A document's position is its file and its record number there, whatever the number of workers; a
retry sees the same position.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from quietcorpus.indexes.tokens.vocabulary import Terms
from quietcorpus.mechanisms.encoding import Value, encode

from ..errors import cut, shown

BATCH_DOCUMENTS = 1024
BATCH_BYTES = 1 << 25
_READING = 2  # the version of the rule that makes a record a document; a change raises it


@dataclass(frozen=True)
class Corpus:
    """The location of the documents, and the fields that matter.

    Attributes:
        pattern: a path, glob or object-store URI.
        text: the column of the text (ignored for text files).
        id: a column whose values must be unique, or None.
        keep: columns that are copied to the release as they are.
        also: further columns that the mechanism reads, each with the spec's key that names it.
        escape: the character that escapes quotes in CSV files; None where they are doubled.
    """

    pattern: str
    text: str = "text"
    id: str | None = None
    keep: tuple[str, ...] = ()
    also: tuple[tuple[str, str], ...] = ()
    escape: str | None = None

    @property
    def others(self) -> list[tuple[str, str]]:
        """Return the columns besides the text, each with the spec's key that names it."""
        return [*(("input.keep", name) for name in self.keep), *self.compared]

    @property
    def compared(self) -> list[tuple[str, str]]:
        """Return those of `others` whose values are compared, and not copied."""
        return [*([("input.id", self.id)] if self.id else []), *self.also]

    @property
    def columns(self) -> list[str]:
        """Return the columns that are read besides the text."""
        return list(dict.fromkeys(name for _, name in self.others))


@dataclass(frozen=True, slots=True)
class Split:
    """A part of one file that one worker reads from end to end; `number` is its place in a plan.

    `types` is the schema of the columns in the whole corpus, as Arrow serialises it, if this file
    has other types.
    """

    uri: str
    format: str
    row_group: int = 0
    first_row: int = 0
    documents: int | None = None
    batch_documents: int = BATCH_DOCUMENTS
    number: int = 0
    types: bytes | None = None

    @property
    def name(self) -> str:
        """Return a file name that no other split has."""
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
        ids: the canonical bytes of each document's unique id, which then addresses its noise in
            place of source and row; None where documents lie in files. An engine decides which
            documents share such a batch, so that nothing may depend on it.
        terms: the texts' terms where an earlier pass has kept them; the texts are then empty.
    """

    source: str
    rows: npt.NDArray[np.int64]
    texts: pa.LargeStringArray
    columns: pa.Table
    rejects: list[Reject] = field(default_factory=list)
    ids: list[bytes] | None = None
    terms: Terms | None = None

    def parts(self, size: int) -> Iterator[Documents]:
        """Yield the batch's documents, without its rejects, in parts of at most `size`."""
        for start in range(0, len(self.rows), size):
            yield Documents(
                self.source,
                self.rows[start : start + size],
                self.texts.slice(start, size),
                self.columns.slice(start, size),
                ids=None if self.ids is None else self.ids[start : start + size],
                terms=None if self.terms is None else self.terms.part(start, size),
            )


@dataclass(frozen=True, slots=True)
class FileState:
    """The state of a file, by which it differs from other files and from its earlier versions.

    Attributes:
        uri: where it is.
        size: in bytes.
        changed: the time of its last change, in seconds, according to its file system.
        checksum: of its content, on a store that keeps one; for a local file, its inode number and
            the time of its last status change, which every change of the file alters.
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
        """Return the number of records if every file states it beforehand, else None."""
        counts = [split.documents for split in self.splits]
        return sum(filter(None, counts)) if None not in counts else None

    def corpus_digest(self, corpus: Corpus) -> bytes:
        """Compute the SHA-256 of all that distinguishes this corpus from others.

        It covers the places of its files, their sizes and states, their division into splits, and
        the columns that are read, since a record is a document if all of them are readable. The
        same corpus at the same place has the same digest; a moved or altered one has another.
        """
        files = [(file.uri, file.size, file.changed, file.checksum) for file in self.files]
        splits = [
            (split.uri, split.format, split.row_group, split.first_row, split.documents)
            for split in self.splits
        ]
        columns = sorted(corpus.columns)
        read: dict[str, Value] = {"version": _READING, "text": corpus.text, "columns": columns}
        if corpus.escape is not None:
            read["escape"] = corpus.escape
        return hashlib.sha256(encode({"read": read, "files": files, "splits": splits})).digest()


def missing_column(key: str, column: str, uri: str, columns: list[str] | None = None) -> str:
    """Return the error message for a column that a file lacks.

    `columns` may be listed where a schema names them. The apparent column names of a CSV or JSON
    Lines file may be private text (a file without a header, a record keyed by content).
    """
    if columns is None:
        return (
            f"{key}: {uri} has no column {shown(column)}; check the spelling, and that a CSV file "
            "begins with its column names"
        )
    return f"{key}: {uri} has no column {shown(column)}; it has {', '.join(map(cut, columns))}"
