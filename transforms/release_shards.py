"""The passes over the corpus for its documents: their ids, and their release."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa

from quietcorpus.mechanisms.keystream import ReleaseKey

from .errors import redacted
from .metrics import Progress
from .privatizers.rows import ORDER, Parameters, PreparedPrivatizer, Privatizer
from .reading.copies import Copies
from .reading.documents import Corpus, Documents, Split
from .reading.identifiers import Identifiers
from .shards import (
    RejectLog,
    Seen,
    Shard,
    Tally,
    Written,
    data_file,
    write_tables,
)
from .staged import KEPT_NOWHERE, FinishedShards, KeptTerms
from .vocabulary import KeySource


class IdentifyDocuments(beam.DoFn):
    """A DoFn from splits to the tagged outputs `tallies` and `identifiers`.

    It has the documents, and rejects the records, that every other pass has and rejects.
    """

    def __init__(self, corpus: Corpus, key: KeySource) -> None:
        self._corpus = corpus
        self._key = key
        self._progress = Progress("identifiers")

    @redacted
    def process(self, split: Split) -> Iterator[object]:
        identifiers = Identifiers(self._corpus.id, self._key(), split.number)
        seen = Seen(identifiers, Tally.of_pass("identifiers", split))
        for documents in self._progress.read(split, self._corpus):
            self._progress.count(documents, 0)
            seen.add(documents)
        yield from seen.outputs()


class ReleaseShards(beam.DoFn):
    """A DoFn that writes a shard's data file; its tally and its identifiers are tagged outputs."""

    def __init__(
        self,
        corpus: Corpus,
        schema: pa.Schema,
        parameters: Parameters,
        key: KeySource,
        staging: str,
        shards: int,
        rejects: RejectLog,
        finished: FinishedShards | None = None,
        kept: KeptTerms = KEPT_NOWHERE,
    ) -> None:
        """Configure the DoFn; without `finished`, no shard is kept, nor recorded for later.

        `kept` holds the terms of splits that an earlier pass has read.
        """
        self._terms = kept
        self._corpus = corpus
        self._schema = released_schema(corpus, schema, parameters)
        self._privatizer = PreparedPrivatizer(parameters)
        self._key = key
        self._staging = staging
        self._shards = shards
        self._rejects = rejects
        self._finished = finished
        self._progress = Progress("release")

    @redacted
    def process(self, shard: Shard, side: Any = None) -> Iterator[object]:
        key = self._key()
        written, seen = self._kept(shard, side, key) or self._made(shard, side, key)
        for split in shard.splits:
            self._terms.forget(split)
        self._rejects.write(seen.rejects, f"shard-{shard.number:05d}")
        self._progress.end()
        yield written
        yield from seen.outputs()

    def _kept(self, shard: Shard, side: Any, key: ReleaseKey) -> tuple[Written, Seen] | None:
        """Return an earlier try's result for a shard, if there is one and it can be verified."""
        if self._finished is None or not shard.records:
            return None
        codebook, path = _codebook(side), data_file(shard.number, self._shards)
        kept = self._finished.kept(shard, codebook, path, self._unseen(shard, key), key)
        if kept:
            self._progress.count_kept(shard.splits[0], kept[1].tally.documents)
        return kept

    def _made(self, shard: Shard, side: Any, key: ReleaseKey) -> tuple[Written, Seen]:
        """Read a shard, privatise it and write it."""
        privatizer, seen = self._privatizer.of(key, side), self._unseen(shard, key)
        written = write_tables(
            self._shuffled(self._rows(shard, privatizer, seen, key, side), privatizer),
            self._schema,
            data_file(shard.number, self._shards),
            self._staging,
            key,
            self._corpus.keep,
        )
        if self._finished:
            self._finished.record(shard, _codebook(side), written, seen, key)
        return written, seen

    def _unseen(self, shard: Shard, key: ReleaseKey) -> Seen:
        """Return what is seen of a shard before its documents are read: its splits."""
        splits = Tally.of_pass("release", *shard.splits)
        return Seen(Identifiers(self._corpus.id, key, shard.number), splits)

    def _rows(
        self, shard: Shard, privatizer: Privatizer, seen: Seen, key: ReleaseKey, side: Any
    ) -> Iterator[pa.Table]:
        for split in shard.splits:
            for batch, copies in self._batches(split, key, side):
                seen.add(batch)
                seen.add_copies(copies)
                self._progress.count_rejects(batch)
                for documents in batch.parts(privatizer.documents_at_once):
                    released = privatizer.release(documents)
                    seen.add_words(released.tokens, released.known, released.frequent)
                    self._progress.count(documents, released.tokens)
                    yield self._with_columns(released.rows, documents.columns)

    def _batches(
        self, split: Split, key: ReleaseKey, side: Any
    ) -> Iterator[tuple[Documents, Copies]]:
        """Read a split, or its terms if an earlier pass has kept them."""
        kept = self._terms.read(split, side.vocabulary, key) if self._terms.folder else None
        if kept is not None:
            yield from self._progress.of(split, kept)
        else:
            for documents in self._progress.read(split, self._corpus):
                yield documents, Copies.of(documents, self._corpus.keep)

    def _with_columns(self, rows: pa.Table, columns: pa.Table) -> pa.Table:
        """Return the columns of a data file, and the order column for the shuffle."""
        named = {name: rows[name] for name in rows.column_names}
        kept = released_names(self._corpus)
        named |= {name: columns[column] for name, column in kept.items()}
        table = pa.table([named[name] for name in self._schema.names], schema=self._schema)
        return table.append_column(ORDER, rows[ORDER])

    def _shuffled(self, tables: Iterator[pa.Table], privatizer: Privatizer) -> Iterator[pa.Table]:
        """Cut row groups of one size and order each by its fresh ids, which the key draws.

        Where batches end depends on the sizes of texts; row groups must not reveal it.
        """
        size = privatizer.row_group_rows
        window: list[pa.Table] = []
        rows = 0
        for table in tables:
            window.append(table)
            rows += len(table)
            while rows >= size:
                gathered = pa.concat_tables(window)
                yield self._in_order(gathered.slice(0, size), privatizer)
                window, rows = [gathered.slice(size)], rows - size
        if rows:
            yield self._in_order(pa.concat_tables(window), privatizer)

    def _in_order(self, rows: pa.Table, privatizer: Privatizer) -> pa.Table:
        order = np.argsort(rows[ORDER].to_numpy(), kind="stable")
        return privatizer.take(rows.drop_columns([ORDER]), order).select(self._schema.names)


def _codebook(side: Any) -> str | None:
    return side.whole_digest if side else None


def released_names(corpus: Corpus) -> dict[str, str]:
    """Map the kept columns' names in a data file to those in the corpus, in order.

    An allow-listed id column replaces the fresh ids, and is therefore called `id`.
    """
    own = {"id": corpus.id} if corpus.id is not None and corpus.id in corpus.keep else {}
    return own | {name: name for name in corpus.keep if name != corpus.id}


def released_schema(corpus: Corpus, schema: pa.Schema, parameters: Parameters) -> pa.Schema:
    """Return the columns of a data file, in order: `id`, the kept ones, the kind's own."""
    kept = released_names(corpus)
    given = kept.pop("id", None)
    identifier = pa.string() if given is None else schema.field(given).type
    own = [schema.field(name) for name in kept]
    return pa.schema([pa.field("id", identifier), *own, *parameters.fields])
