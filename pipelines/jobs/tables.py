"""The tables that precede a release's documents: a worker writes them, and others read them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import apache_beam as beam
import pyarrow as pa

from quietcorpus.indexes.tokens.vocabulary import Vocabulary
from quietcorpus.mechanisms.bags.histogram import Counts
from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.transforms.errors import redacted
from quietcorpus.transforms.reading.parquet_files import table_in
from quietcorpus.transforms.shards import Written, staged_content, write_tables
from quietcorpus.transforms.vocabulary import vocabulary_table

from ..storage.layout import VOCABULARY
from .job import Job

Tables = Iterator[tuple[str, pa.Schema, Iterable[pa.Table]]]
"""Tables as their row groups, each after its path in the release and its schema."""


def whole(path: str, table: pa.Table) -> tuple[str, pa.Schema, list[pa.Table]]:
    """Return a table that is one row group."""
    return path, table.schema, [table]


def of_vocabulary(weights: Counts | None, vocabulary: Vocabulary) -> Tables:
    """Yield the table of the vocabulary, with its noisy counts if there are any."""
    yield whole(VOCABULARY, vocabulary_table(vocabulary, weights))


class WriteTables(beam.DoFn):
    """A writer of the tables that a function makes of an element and any side input."""

    def __init__(self, job: Job, tables: Callable[[Any, Any], Tables] = of_vocabulary) -> None:
        self._staging = job.staging
        self._key = job.key
        self._tables = tables

    @redacted
    def process(self, element: Any, side: Any = None) -> Iterator[Written]:
        for path, schema, groups in self._tables(element, side):
            yield write_tables(groups, schema, path, self._staging, self._key())


def staged_table(file: Written, key: ReleaseKey) -> pa.Table:
    """Read the table of a staged Parquet file."""
    return table_in(b"".join(staged_content(file, key)))
