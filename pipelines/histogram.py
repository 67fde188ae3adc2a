"""The job of `kind: histogram`: the private histogram of the corpus's terms, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

import apache_beam as beam

from indexes.vocabulary import Vocabulary
from mechanisms.guarantees import Spending
from mechanisms.histogram import Counts, Histogram
from pipelines.job import Job, refuse_repeated, selection, splits_of, vocabulary_of
from pipelines.manifest import WriteManifest
from pipelines.spec import HistogramSpec
from pipelines.storage import VOCABULARY
from transforms.errors import redacted
from transforms.histogram import ReleaseHistogram
from transforms.identifiers import TAG
from transforms.shards import TALLIES, Written, write_tables
from transforms.vocabulary import vocabulary_table


def spendings(spec: HistogramSpec) -> list[Spending]:
    """What the job spends, stage by stage."""
    selected = selection(spec.vocabulary, spec.precision)
    first = [Spending("vocabulary", selected.guarantee)] if selected else []
    return [*first, Spending("histogram", Histogram(spec.precision, spec.epsilon).guarantee)]


def build(pipeline: beam.Pipeline, job: Job, spec: HistogramSpec) -> None:
    """Add the job to a pipeline."""
    splits = splits_of(pipeline, job)
    vocabulary = beam.pvalue.AsSingleton(vocabulary_of(pipeline, splits, job))
    released = splits | "histogram" >> ReleaseHistogram(
        job.corpus,
        vocabulary,
        Histogram(spec.precision, spec.epsilon),
        job.key,
        job.rejects,
        job.corpus.id,
    )
    files = released["weights"] | "write" >> beam.ParDo(_Write(job.staging), vocabulary)
    refuse_repeated(released[TAG], job)
    (files, released[TALLIES]) | "manifest" >> WriteManifest(job.staging)


class _Write(beam.DoFn):
    def __init__(self, staging: str) -> None:
        self._staging = staging

    @redacted
    def process(self, weights: Counts, vocabulary: Vocabulary) -> Iterator[Written]:
        table = vocabulary_table(vocabulary, weights)
        yield write_tables([table], table.schema, VOCABULARY, self._staging)
