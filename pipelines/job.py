"""What every job is given, and the vocabulary step that all of them begin with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import apache_beam as beam

from indexes.vocabulary import Vocabulary
from mechanisms.histogram import ThresholdedVocabulary
from pipelines.spec import Spec, VocabularySpec
from transforms.artefacts import Artefact
from transforms.documents import Corpus, Plan, Split
from transforms.identifiers import RefuseRepeated
from transforms.shards import RejectLog, Shard
from transforms.vocabulary import KeySource, SelectVocabulary, load


@dataclass(frozen=True)
class Job:
    """A validated release on its way into a pipeline.

    Attributes:
        spec: the spec.
        plan: the corpus's splits and column types.
        shards: the splits, grouped into output files.
        key: fetches the release key in workers.
        staging: where files are written before the release is published.
        artefacts: the public artefacts, by name.
    """

    spec: Spec
    plan: Plan
    shards: Sequence[Shard]
    key: KeySource
    staging: str
    artefacts: Mapping[str, Artefact]

    @property
    def corpus(self) -> Corpus:
        """The corpus in the transforms' terms."""
        return self.spec.input.corpus

    @property
    def rejects(self) -> RejectLog:
        """Where rejects are noted: a folder of this release in the restricted location."""
        place = self.spec.rejects
        return RejectLog(f"{place.path}/{self.spec.release}" if place else None)


def selection(spec: VocabularySpec, precision: int) -> ThresholdedVocabulary | None:
    """The private selection that the spec asks for, if it does."""
    if spec.private is None:
        return None
    return ThresholdedVocabulary(precision, spec.private.epsilon, spec.private.delta)


def vocabulary_of(
    pipeline: beam.Pipeline, splits: beam.PCollection[Split], job: Job
) -> beam.PCollection[Vocabulary]:
    """One `Vocabulary`: the public list, or the private selection from the corpus."""
    mechanism = job.spec.mechanism
    selected = selection(mechanism.vocabulary, mechanism.precision)
    if selected is None:
        return (
            pipeline
            | "public vocabulary" >> beam.Create([job.artefacts["vocabulary"]])
            | "load" >> beam.Map(load)
        )
    return splits | "vocabulary" >> SelectVocabulary(job.corpus, selected, job.key)


def splits_of(pipeline: beam.Pipeline, job: Job) -> beam.PCollection[Split]:
    """The splits of the corpus, spread over the workers."""
    return pipeline | "splits" >> beam.Create(job.plan.splits) | beam.Reshuffle()


def refuse_repeated(digests: beam.PCollection, job: Job) -> None:
    """Have the job fail if the corpus's id column, where one is named, repeats a value."""
    if job.corpus.id is not None:
        digests | "unique ids" >> RefuseRepeated(job.corpus.id)
