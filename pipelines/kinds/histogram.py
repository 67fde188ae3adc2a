"""The job of `kind: histogram`: the private histogram of the corpus's terms, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import apache_beam as beam

from quietcorpus.indexes.vocabulary import Vocabulary
from quietcorpus.mechanisms.guarantees import LimitedPrecision, Spending, compose
from quietcorpus.mechanisms.histogram import Counts, Histogram
from quietcorpus.pipelines.card import model as card
from quietcorpus.pipelines.kinds.job import Job, refuse_repeated, splits_of
from quietcorpus.pipelines.kinds.kind import Account, Kind
from quietcorpus.pipelines.kinds.limited_precision import UNIT_SCOPE, VocabularyStep, not_protected
from quietcorpus.pipelines.kinds.manifest import WriteManifest
from quietcorpus.pipelines.spec.histogram import HistogramSpec
from quietcorpus.pipelines.storage.files import rows_of
from quietcorpus.pipelines.storage.layout import VOCABULARY
from quietcorpus.transforms.errors import redacted
from quietcorpus.transforms.histogram import ReleaseHistogram
from quietcorpus.transforms.reading.identifiers import TAG
from quietcorpus.transforms.shards import TALLIES, Tally, Written, write_tables
from quietcorpus.transforms.vocabulary import KeySource, vocabulary_table


@dataclass(frozen=True)
class HistogramKind(Kind):
    """The kind `histogram`, with its vocabulary found."""

    spec: HistogramSpec
    vocabulary: VocabularyStep

    computing = ""
    unit_scope = UNIT_SCOPE
    has_documents = False

    @classmethod
    def resolve(cls, spec: HistogramSpec) -> HistogramKind:
        """Find the vocabulary; raises InputError if it cannot be used."""
        return cls(spec, VocabularyStep.resolve(spec))

    @property
    def passes(self) -> int:
        """Return how many times every document is read."""
        return 1 + self.vocabulary.passes

    @property
    def artefacts(self) -> Sequence[card.Artefact]:
        """Return the vocabulary, if it is public."""
        return self.vocabulary.artefacts

    def build(self, pipeline: beam.Pipeline, job: Job) -> None:
        """Add the job to a pipeline."""
        splits = splits_of(pipeline, job)
        terms, tallies = self.vocabulary.build(pipeline, splits, job)
        vocabulary = beam.pvalue.AsSingleton(terms)
        released = splits | "histogram" >> ReleaseHistogram(
            job.corpus,
            vocabulary,
            self.histogram,
            job.key,
            len(job.plan.splits),
            job.rejects,
            job.corpus.id,
        )
        files = released["weights"] | "write" >> beam.ParDo(
            _Write(job.staging, job.key), vocabulary
        )
        refuse_repeated(released[TAG], job)
        (files, released[TALLIES], *tallies) | "manifest" >> WriteManifest(job.staging, job.key)

    @property
    def histogram(self) -> Histogram:
        """Return the mechanism."""
        return Histogram(self.spec.precision, self.spec.epsilon)

    def check(self, tally: Tally) -> None:
        """Accept any corpus: every corpus has a histogram."""

    @property
    def cost(self) -> LimitedPrecision:
        """Return the joint cost of the vocabulary and the histogram."""
        return compose(self._spendings)

    @property
    def _spendings(self) -> list[Spending[LimitedPrecision]]:
        return [*self.vocabulary.spendings, Spending("histogram", self.histogram.guarantee)]

    def account(self, files: Sequence[Written]) -> Account:
        """Return the account of the run."""
        spendings = self._spendings
        total = compose(spendings)
        resolved = {"vocabulary_size": rows_of(files, VOCABULARY)}
        return Account(spendings, total, resolved, not_protected(total))


class _Write(beam.DoFn):
    def __init__(self, staging: str, key: KeySource) -> None:
        self._staging = staging
        self._key = key

    @redacted
    def process(self, weights: Counts, vocabulary: Vocabulary) -> Iterator[Written]:
        table = vocabulary_table(vocabulary, weights)
        yield write_tables([table], table.schema, VOCABULARY, self._staging, self._key())


def resolve(spec: HistogramSpec, _: int = 1) -> HistogramKind:
    """Prepare a release; raises InputError for artefacts that cannot be used."""
    return HistogramKind.resolve(spec)
