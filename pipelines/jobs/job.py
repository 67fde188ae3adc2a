"""The input of every job, and the steps and tables that several share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import apache_beam as beam

from quietcorpus.indexes.tokens.vocabulary import Vocabulary
from quietcorpus.mechanisms.bags.histogram import Counts
from quietcorpus.transforms.privatizers.rows import Parameters
from quietcorpus.transforms.reading.documents import Corpus, Plan, Split
from quietcorpus.transforms.reading.identifiers import TAG, RefuseRepeated
from quietcorpus.transforms.release_shards import ReleaseShards
from quietcorpus.transforms.run_files import Tables, WriteRunFiles, whole
from quietcorpus.transforms.shards import TALLIES, RejectLog, Shard
from quietcorpus.transforms.staged import KEPT_NOWHERE, FinishedShards, KeptTerms
from quietcorpus.transforms.vocabulary import KeySource, vocabulary_table

from ..schema.spec import Spec
from ..storage.layout import VOCABULARY
from ..storage.places import is_local
from ..terminal.progress import Steps


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


def of_vocabulary(weights: Counts | None, vocabulary: Vocabulary) -> Tables:
    """Yield the table of the vocabulary, with its noisy counts if there are any."""
    yield whole(VOCABULARY, vocabulary_table(vocabulary, weights))
