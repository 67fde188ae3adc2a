"""The job of `kind: bag-of-words`: vocabulary, histogram, compression map, then the documents."""

from __future__ import annotations

from collections.abc import Iterator

import apache_beam as beam
import pyarrow as pa

from mechanisms.guarantees import Spending
from mechanisms.histogram import Histogram
from pipelines.job import Job, refuse_repeated, selection, splits_of, vocabulary_of
from pipelines.manifest import WriteManifest
from pipelines.spec import BagOfWordsSpec
from pipelines.storage import COMPRESSION, VOCABULARY
from transforms.bag_of_words import ReleaseShards
from transforms.codebook import BuildCodebook, Codebook, Compression
from transforms.errors import redacted
from transforms.histogram import ReleaseHistogram
from transforms.identifiers import TAG
from transforms.privatizer import BagOfWordsParameters
from transforms.shards import TALLIES, Written, write_tables
from transforms.vocabulary import vocabulary_table


def parameters(spec: BagOfWordsSpec) -> BagOfWordsParameters:
    """The documents' mechanism, but for the sizes."""
    return BagOfWordsParameters(spec.precision, spec.epsilon, spec.accounting)


def spendings(spec: BagOfWordsSpec, vocabulary_size: int) -> list[Spending]:
    """What the job spends, stage by stage, once the vocabulary's size is known."""
    selected = selection(spec.vocabulary, spec.precision)
    documents = parameters(spec).mechanism(
        vocabulary_size, spec.compression.size or vocabulary_size
    )
    stages = [Spending("vocabulary", selected.guarantee)] if selected else []
    if spec.histogram_epsilon:
        stages.append(
            Spending("histogram", Histogram(spec.precision, spec.histogram_epsilon).guarantee)
        )
    return [*stages, Spending("documents", documents.guarantee)]


def build(pipeline: beam.Pipeline, job: Job, spec: BagOfWordsSpec) -> None:
    """Add the job to a pipeline."""
    splits = splits_of(pipeline, job)
    vocabulary = beam.pvalue.AsSingleton(vocabulary_of(pipeline, splits, job))
    sides = [vocabulary]
    if spec.histogram_epsilon:
        released = splits | "histogram" >> ReleaseHistogram(
            job.corpus,
            vocabulary,
            Histogram(spec.precision, spec.histogram_epsilon),
            job.key,
        )
        sides.append(beam.pvalue.AsSingleton(released["weights"]))
    codebook = (
        pipeline
        | "start" >> beam.Create([None])
        | "codebook" >> beam.ParDo(BuildCodebook(_compression(job, spec), job.key), *sides)
    )
    shards = pipeline | "shards" >> beam.Create(job.shards) | "spread" >> beam.Reshuffle()
    documents = shards | "documents" >> beam.ParDo(
        ReleaseShards(
            job.corpus,
            job.plan.schema,
            parameters(spec),
            job.key,
            job.staging,
            len(job.shards),
            job.rejects,
        ),
        beam.pvalue.AsSingleton(codebook),
    ).with_outputs(TALLIES, TAG, main="files")
    tables = codebook | "write codebook" >> beam.ParDo(_WriteCodebook(job.staging))
    refuse_repeated(documents[TAG], job)
    (documents.files, documents[TALLIES], tables) | "manifest" >> WriteManifest(job.staging)


def _compression(job: Job, spec: BagOfWordsSpec) -> Compression:
    given = spec.compression
    return Compression(given.method, given.size, job.artefacts.get("embedding"))


class _WriteCodebook(beam.DoFn):
    """The public tables of a release: its vocabulary, and its map where there is one."""

    def __init__(self, staging: str) -> None:
        self._staging = staging

    @redacted
    def process(self, codebook: Codebook) -> Iterator[Written]:
        table = vocabulary_table(codebook.vocabulary, codebook.weights)
        yield write_tables([table], table.schema, VOCABULARY, self._staging)
        if codebook.compresses:
            numbers = pa.array(range(len(codebook.bins)), pa.int32())
            bins = pa.table({"term_id": numbers, "bin": pa.array(codebook.bins)})
            yield write_tables([bins], bins.schema, COMPRESSION, self._staging)
