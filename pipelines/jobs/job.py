"""The input of every job, the steps and tables that several share, and the list of a run's files.

The list of a run's files, in its staging area: it tells the launcher what a pipeline wrote.

The input of every job, and the steps that several jobs share.

The tables that precede a release's documents: a worker writes them, and others read them.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import chain
from typing import Any

import apache_beam as beam
import orjson
import pyarrow as pa
from apache_beam.transforms.window import GlobalWindows

from quietcorpus.indexes.tokens.vocabulary import Vocabulary
from quietcorpus.mechanisms.bags.histogram import Counts
from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.transforms.errors import StageError, client_errors, redacted
from quietcorpus.transforms.privatizers.rows import Parameters
from quietcorpus.transforms.reading.documents import Corpus, Plan, Split
from quietcorpus.transforms.reading.identifiers import TAG, RefuseRepeated
from quietcorpus.transforms.reading.parquet_files import table_in
from quietcorpus.transforms.release import ReleaseShards
from quietcorpus.transforms.sealed import seal_pieces, unseal, wide
from quietcorpus.transforms.shards import (
    TALLIES,
    RejectLog,
    Shard,
    Tally,
    Written,
    staged_content,
    write_tables,
)
from quietcorpus.transforms.staged import KEPT_NOWHERE, FinishedShards, KeptTerms
from quietcorpus.transforms.vocabulary import KeySource, vocabulary_table

from ..schema.spec import Spec
from ..storage.files import read_bytes, write_bytes
from ..storage.layout import VOCABULARY
from ..storage.places import is_local
from ..terminal.progress import Steps

_NAME = "manifest.json"
_FILE, _TALLY = b"file ", b"tally "
_AT_ONCE = 500


class WriteRunFiles(beam.PTransform):
    """A transform that gathers `Written` files and `Tally` values into the list.

    The list is sealed, because the noisy size of a private vocabulary is not released yet. Its
    length tells nothing of a count.
    """

    def __init__(self, staging: str, key: KeySource) -> None:
        super().__init__()
        self._staging = staging
        self._key = key

    def expand(self, parts: tuple[beam.PCollection, ...]) -> beam.PCollection:
        entries = [
            part | f"entries {number}" >> beam.ParDo(_Pack()).with_output_types(bytes)
            for number, part in enumerate(parts)
        ]
        return (
            entries
            | beam.Flatten()
            | beam.CombineGlobally(beam.combiners.ToListCombineFn()).without_defaults()
            | beam.ParDo(_Write(f"{self._staging}/{_NAME}", self._key))
        )


def _entry(found: Written | Tally) -> bytes:
    """Return a file or a tally as JSON: as objects, all of them would take ten times the memory."""
    if isinstance(found, Tally):
        return _TALLY + orjson.dumps(found.encoded())
    return _FILE + orjson.dumps(asdict(found) | {"rows": wide(found.rows)})


class _Pack(beam.DoFn):
    """Compresses entries, a few at a time: Beam holds each one several times between two steps."""

    def start_bundle(self) -> None:
        self._entries: list[bytes] = []

    @redacted
    def process(self, found: Written | Tally) -> Iterator[bytes]:
        self._entries.append(_entry(found))
        if len(self._entries) == _AT_ONCE:
            yield self._packed()

    @redacted
    def finish_bundle(self) -> Iterator[Any]:
        if self._entries:
            yield GlobalWindows.windowed_value(self._packed())

    def _packed(self) -> bytes:
        packed = zlib.compress(b"\n".join(self._entries))
        self._entries.clear()
        return packed


def _unpacked(packed: Iterable[bytes], sort: bytes) -> Iterator[bytes]:
    """Yield the entries of a sort as JSON."""
    for some in packed:
        for entry in zlib.decompress(some).split(b"\n"):
            if entry.startswith(sort):
                yield entry.removeprefix(sort)


class _Write(beam.DoFn):
    def __init__(self, uri: str, key: KeySource) -> None:
        self._uri = uri
        self._key = key

    @redacted
    def process(self, packed: list[bytes]) -> Iterator[str]:
        told = (Tally.decoded(orjson.loads(one)) for one in _unpacked(packed, _TALLY))
        tally = orjson.dumps(Tally.total(told).encoded())
        files = (b"\n" + file for file in _unpacked(packed, _FILE))
        # Line by line: all of them, too, would be held beside what they become.
        write_bytes(self._uri, seal_pieces(chain([tally], files), self._uri, self._key()))
        yield self._uri


def read_run_files(staging: str, key: ReleaseKey) -> tuple[list[Written], Tally]:
    """Read the list: the files that the pipeline wrote, by path, and the tally of what it read.

    Raises StageError if there is none.
    """
    uri = f"{staging}/{_NAME}"
    tally, *files = unseal(_content(uri), uri, key).split(b"\n")
    # One by one, or dictionaries of all of them would be held beside the files.
    written = (_file(orjson.loads(file)) for file in files)
    return sorted(written, key=lambda file: file.path), Tally.decoded(orjson.loads(tally))


def _content(uri: str) -> bytes:
    lost = (
        "is missing: the engine lost every part of the corpus, or the step that lists what it "
        "wrote; run again, on another engine if that repeats"
    )
    with client_errors(uri, lost, StageError):
        return read_bytes(uri)


def _file(fields: dict[str, Any]) -> Written:
    return Written(**fields | {"rows": int(fields["rows"])})


@dataclass(frozen=True)
class Job:
    """A validated release, ready to be built into a pipeline.

    Attributes:
        spec: the spec.
        plan: the corpus's splits and column types.
        shards: the splits, grouped into output files.
        key: fetches the release key in workers.
        staging: the folder for files that are not published yet.
        workers: the number of local processes that the launcher's own work may use.
        steps: the steps of the run, of which the launcher's own work may show some.
        finished: the records of finished shards; None keeps none, and leaves none.
    """

    spec: Spec
    plan: Plan
    shards: Sequence[Shard]
    key: KeySource
    staging: str
    workers: int = 1
    steps: Steps = field(default_factory=partial(Steps, 0, bar=False))
    finished: FinishedShards | None = None

    @property
    def corpus(self) -> Corpus:
        """Return the corpus in the transforms' terms."""
        return self.spec.corpus

    @property
    def identifiers(self) -> str | None:
        """Return the folder for the ids' digests, if the ledger compares partitions by them."""
        return f"{self.staging}/identifiers" if self.spec.disjoint == "compared" else None

    @property
    def kept_terms(self) -> KeptTerms:
        """Return the place where a pass keeps terms for the next one.

        It is none where the staging area is on an object store, whose files others may list.
        """
        if not is_local(self.staging):
            return KEPT_NOWHERE
        return KeptTerms(f"{self.staging}/terms", self.corpus.keep)

    @property
    def rejects(self) -> RejectLog:
        """Return the log of rejects: a folder of this release in the restricted location."""
        place = self.spec.rejects
        return RejectLog(f"{place.path}/{self.spec.release}" if place else None)


def release_documents(
    pipeline: beam.Pipeline,
    job: Job,
    parameters: Parameters,
    *side: beam.PCollection,
    others: Sequence[beam.PCollection] = (),
    kept: KeptTerms = KEPT_NOWHERE,
) -> None:
    """Write one data file for each shard, and the list of files, and check the ids for repeats.

    `side` holds the inputs of the kind's privatizer besides its parameters. `others` holds the
    other files of the release, and the tallies of earlier passes; `kept` what such a pass keeps.
    """
    documents = (
        pipeline
        | "shards" >> beam.Create(job.shards)  # `Create` spreads them over the workers
        | "documents"
        >> beam.ParDo(
            ReleaseShards(
                job.corpus,
                job.plan.schema,
                parameters,
                job.key,
                job.staging,
                len(job.shards),
                job.rejects,
                job.finished,
                kept,
            ),
            *map(beam.pvalue.AsSingleton, side),
        ).with_outputs(TALLIES, TAG, main="files")
    )
    refuse_repeated(documents[TAG], job)
    (documents.files, documents[TALLIES], *others) | "run files" >> WriteRunFiles(
        job.staging, job.key
    )


def splits_of(pipeline: beam.Pipeline, job: Job) -> beam.PCollection[Split]:
    """Return the splits of the corpus, spread over the workers."""
    return pipeline | "splits" >> beam.Create(job.plan.splits)  # `Create` spreads them


def refuse_repeated(digests: beam.PCollection, job: Job) -> None:
    """Make the job fail if the corpus's id column, where one is named, repeats a value."""
    if job.corpus.id is not None:
        digests | "unique ids" >> RefuseRepeated(job.corpus.id, job.key, job.identifiers)


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
