"""The release of bags of words, one shard after another."""

from __future__ import annotations

from collections.abc import Iterator

import apache_beam as beam
import numpy as np
import pyarrow as pa

from mechanisms.bags import Bags, permute
from mechanisms.keystream import ReleaseKey
from transforms.codebook import Codebook
from transforms.documents import Corpus
from transforms.errors import redacted
from transforms.identifiers import Identifiers
from transforms.metrics import Progress
from transforms.privatizer import ORDER, BagOfWordsParameters, Privatizer, as_lists
from transforms.shards import RejectLog, Seen, Shard, write_tables
from transforms.sources import read
from transforms.vocabulary import KeySource


class ReleaseShards(beam.DoFn):
    """A shard in; its data file out, and, tagged, its tally and its identifiers."""

    def __init__(
        self,
        corpus: Corpus,
        schema: pa.Schema,
        parameters: BagOfWordsParameters,
        key: KeySource,
        staging: str,
        shards: int,
        rejects: RejectLog,
    ) -> None:
        self._corpus = corpus
        self._schema = released_schema(corpus, schema)
        self._parameters = parameters
        self._key = key
        self._staging = staging
        self._shards = shards
        self._rejects = rejects
        self._progress = Progress("release")

    def setup(self) -> None:
        self._prepared: tuple[str, Privatizer] | None = None

    @redacted
    def process(self, shard: Shard, codebook: Codebook) -> Iterator[object]:
        key = self._key()
        privatizer = self._privatizer(codebook, key)
        seen = Seen(Identifiers(self._corpus.id, key))
        path = f"data/part-{shard.number:05d}-of-{self._shards:05d}.parquet"
        written = write_tables(
            _shuffled(self._rows(shard, privatizer, seen), privatizer.row_group_rows),
            self._schema,
            path,
            self._staging,
            use_dictionary=list(self._corpus.keep),
        )
        self._rejects.write(seen.rejects, f"shard-{shard.number:05d}")
        yield written
        yield from seen.outputs()

    def _privatizer(self, codebook: Codebook, key: ReleaseKey) -> Privatizer:
        """Its tables are made once for a worker, not once for a shard."""
        if self._prepared is None or self._prepared[0] != codebook.digest:
            self._prepared = codebook.digest, Privatizer(self._parameters, codebook, key)
        return self._prepared[1]

    def _rows(self, shard: Shard, privatizer: Privatizer, seen: Seen) -> Iterator[pa.Table]:
        for split in shard.splits:
            for batch in read(split, self._corpus):
                seen.add(batch)
                tokens = 0
                for documents in batch.parts(privatizer.documents_at_once):
                    rows, read_tokens = privatizer.release(documents)
                    tokens += read_tokens
                    yield self._with_columns(rows, documents.columns)
                self._progress.count(batch, tokens)

    def _with_columns(self, rows: pa.Table, columns: pa.Table) -> pa.Table:
        """The columns of a data file, and the order for the shuffle."""
        named = {name: rows[name] for name in rows.column_names}
        named |= {name: columns[name] for name in self._corpus.keep}
        if self._corpus.id in self._corpus.keep:
            named["id"] = columns[self._corpus.id]
        table = pa.table([named[name] for name in self._schema.names], schema=self._schema)
        return table.append_column(ORDER, rows[ORDER])


def released_schema(corpus: Corpus, schema: pa.Schema) -> pa.Schema:
    """The columns of a data file, in order: `id`, the kept ones, `terms`, `counts`.

    An allow-listed id column takes the place of the fresh ids.
    """
    given = corpus.id is not None and corpus.id in corpus.keep
    identifier = schema.field(corpus.id).type if given else pa.string()
    return pa.schema(
        [
            pa.field("id", identifier),
            *(schema.field(name) for name in corpus.keep if name != corpus.id),
            pa.field("terms", pa.list_(pa.int32())),
            pa.field("counts", pa.list_(pa.int32())),
        ]
    )


def _shuffled(tables: Iterator[pa.Table], size: int) -> Iterator[pa.Table]:
    """Cut row groups of exactly `size` rows and order each by its fresh ids, drawn by the key.

    Batches end where the texts' sizes say; row groups must not tell where that was.
    """
    window: list[pa.Table] = []
    rows = 0
    for table in tables:
        window.append(table)
        rows += len(table)
        while rows >= size:
            gathered = pa.concat_tables(window)
            yield _in_order(gathered.slice(0, size))
            window, rows = [gathered.slice(size)], rows - size
    if rows:
        yield _in_order(pa.concat_tables(window))


def _in_order(rows: pa.Table) -> pa.Table:
    order = np.argsort(rows[ORDER].to_numpy(), kind="stable")
    terms, counts = (rows[name].combine_chunks() for name in ("terms", "counts"))
    # Arrow takes three times as long to permute lists.
    bags = permute(
        Bags(
            terms.offsets.to_numpy().astype(np.int64),
            terms.values.to_numpy(),
            counts.values.to_numpy(),
        ),
        order,
    )
    lists = as_lists(bags)
    others = rows.drop_columns([ORDER, *lists]).take(pa.array(order))
    for name, column in lists.items():
        others = others.append_column(name, column)
    return others
