"""The job of `kind: histogram`: the private histogram of the corpus's terms, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType

import apache_beam as beam

from quietcorpus.mechanisms.guarantees import LimitedPrecision, Spending, compose
from quietcorpus.mechanisms.histogram import Histogram
from quietcorpus.transforms.histogram import ReleaseHistogram
from quietcorpus.transforms.reading.identifiers import TAG
from quietcorpus.transforms.shards import TALLIES, Tally, Written

from ..card import model as card
from ..card.limited_precision import limits_of
from ..schema.histogram import HistogramSpec
from ..storage.files import rows_of
from ..storage.layout import VOCABULARY
from . import noise
from .job import Job, refuse_repeated, splits_of
from .kind import Account
from .limited_precision import (
    LimitedPrecisionKind,
    VocabularyStep,
)
from .run_files import WriteRunFiles
from .tables import WriteTables


@dataclass(frozen=True)
class HistogramKind(LimitedPrecisionKind):
    """The kind `histogram`, with its vocabulary found."""

    spec: HistogramSpec
    vocabulary: VocabularyStep

    laws = MappingProxyType({"vocabulary": 1, "histogram": 1})
    has_documents = False

    @classmethod
    def resolve(cls, spec: HistogramSpec, _workers: int = 1) -> HistogramKind:
        """Find the vocabulary; raises InputError if it cannot be used."""
        return cls(spec, VocabularyStep.resolve(spec))

    @property
    def passes(self) -> int:
        return 1 + self.vocabulary.passes

    @property
    def artefacts(self) -> Sequence[card.UsedArtefact]:
        return self.vocabulary.artefacts

    def build(self, pipeline: beam.Pipeline, job: Job) -> None:
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
        files = released["weights"] | "write" >> beam.ParDo(WriteTables(job), vocabulary)
        refuse_repeated(released[TAG], job)
        (files, released[TALLIES], *tallies) | "run files" >> WriteRunFiles(job.staging, job.key)

    @property
    def histogram(self) -> Histogram:
        """Return the mechanism."""
        return Histogram(self.spec.precision, self.spec.epsilon)

    def check(self, tally: Tally) -> None:
        """Accept any corpus: every corpus has a histogram."""

    @property
    def cost(self) -> LimitedPrecision:
        return compose(self.spendings)

    @property
    def expected_noise(self) -> Sequence[str]:
        found = noise.of_histogram(self.spec.epsilon / self.spec.precision)
        return [found, *self.vocabulary.expected_noise]

    @property
    def sample_words(self) -> Sequence[str]:
        return self.vocabulary.sample_words

    @property
    def spendings(self) -> list[Spending[LimitedPrecision]]:
        """Return the cost of each stage."""
        return [*self.vocabulary.spendings, Spending("histogram", self.histogram.guarantee)]

    def account(self, files: Sequence[Written]) -> Account:
        spendings = self.spendings
        total = compose(spendings)
        resolved = {"vocabulary_size": rows_of(files, VOCABULARY)}
        limits = limits_of(spendings, self.vocabulary.tokenizer.description)
        return Account(spendings, total, resolved, limits)


resolve = HistogramKind.resolve
