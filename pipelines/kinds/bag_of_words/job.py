"""The job of `kind: bag-of-words`: vocabulary, histogram, compression map, then the documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType

import apache_beam as beam
import pyarrow as pa

from quietcorpus.indexes.maps.compression import Assignment
from quietcorpus.mechanisms.accounting.guarantees import LimitedPrecision, Spending, compose
from quietcorpus.mechanisms.bags.bag_of_words import Accounting, BagOfWords
from quietcorpus.mechanisms.bags.histogram import Histogram
from quietcorpus.transforms.artefacts.files import FileSource
from quietcorpus.transforms.codebook import BuildCodebook, Codebook, Compression
from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.histogram import HistogramOfSplits
from quietcorpus.transforms.privatizers.bags import BagOfWordsParameters
from quietcorpus.transforms.run_files import Tables, WriteTables, whole
from quietcorpus.transforms.shards import TALLIES, Tally, Written
from quietcorpus.transforms.staged import KEPT_NOWHERE

from ...card import model as card
from ...card import statements
from ...jobs import notices, verdicts
from ...jobs.job import Job, of_vocabulary, release_documents, splits_of
from ...jobs.kind import Account
from ...storage.files import rows_of
from ...storage.layout import COMPRESSION, VOCABULARY
from ..histogram.job import LimitedPrecisionKind, VocabularyStep
from .card import bag_limits, papers_figure
from .spec import BagOfWordsSpec


@dataclass(frozen=True)
class BagOfWordsKind(LimitedPrecisionKind):
    """The kind `bag-of-words`, with its public artefacts found."""

    spec: BagOfWordsSpec
    vocabulary: VocabularyStep
    embedding: FileSource | None

    laws = MappingProxyType({"vocabulary": 1, "histogram": 1, "compression": 1, "documents": 1})
    has_documents = True

    @classmethod
    def resolve(cls, spec: BagOfWordsSpec, _workers: int = 1) -> BagOfWordsKind:
        """Find the artefacts; raises InputError for unusable ones, or for more bins than terms."""
        vocabulary = VocabularyStep.resolve(spec)
        given = spec.compression.embedding
        if vocabulary.size is not None:
            _compression(spec).check(vocabulary.size)
        key = "mechanism.compression.embedding.public"
        return cls(spec, vocabulary, FileSource.resolve(key, given.public) if given else None)

    @property
    def passes(self) -> int:
        return 1 + self.vocabulary.passes + (self.histogram is not None)

    @property
    def artefacts(self) -> Sequence[card.UsedArtefact]:
        vectors = (
            [statements.public_artefact("embedding", self.embedding)] if self.embedding else []
        )
        return [*self.vocabulary.artefacts, *vectors]

    @property
    def parameters(self) -> BagOfWordsParameters:
        """Return the parameters of the documents' mechanism."""
        spec = self.spec
        with_bins = spec.include is not None
        return BagOfWordsParameters(spec.precision, spec.epsilon, spec.accounting, with_bins)

    @property
    def histogram(self) -> Histogram | None:
        """Return the histogram's mechanism, if there is one."""
        epsilon = self.spec.histogram_epsilon
        return Histogram(self.spec.precision, epsilon) if epsilon else None

    @property
    def compression(self) -> Compression:
        """Return the settings of the compression map."""
        return _compression(self.spec, self.embedding)

    def build(self, pipeline: beam.Pipeline, job: Job) -> None:
        splits = splits_of(pipeline, job)
        terms, tallies = self.vocabulary.build(pipeline, splits, job)
        vocabulary = beam.pvalue.AsSingleton(terms)
        if self.histogram:
            released = splits | "histogram" >> HistogramOfSplits(
                job.corpus,
                vocabulary,
                self.histogram,
                job.key,
                len(job.plan.splits),
                kept=job.kept_terms,
            )
            weights = released["weights"]
            tallies.append(released[TALLIES] | "parts alone" >> beam.Map(Tally.of_parts_alone))
        else:
            weights = pipeline | "no weights" >> beam.Create([None])
        codebook = weights | "codebook" >> beam.ParDo(
            BuildCodebook(self.compression, job.key), vocabulary
        )
        tables = codebook | "write codebook" >> beam.ParDo(
            WriteTables(job.staging, job.key, codebook_tables)
        )
        kept = job.kept_terms if self.histogram else KEPT_NOWHERE
        release_documents(
            pipeline, job, self.parameters, codebook, others=(tables, *tallies), kept=kept
        )

    def check(self, tally: Tally) -> None:
        """Accept any corpus: every corpus has bags of words."""

    @property
    def cost(self) -> LimitedPrecision:
        """Return the cost of all stages together.

        Raises InputError if it depends on the size of a private vocabulary, which is not known
        before the run.
        """
        if self.vocabulary.size is None and self.spec.accounting is Accounting.PER_ENTRY:
            raise InputError(
                "mechanism.accounting: what `per-entry` costs depends on the size of the private "
                "vocabulary, and is not known before the run; use `tight`, or a public vocabulary"
            )
        # Under `tight` accounting the cost does not depend on the size: 1 stands in for it.
        return compose(self.spendings(self.vocabulary.size or 1))

    def spendings(self, size: int) -> list[Spending[LimitedPrecision]]:
        """Return the cost of each stage over a vocabulary of this size."""
        return [*self._before, Spending("documents", self._documents(size).guarantee)]

    @property
    def _before(self) -> list[Spending[LimitedPrecision]]:
        """Return the spendings before the release of the documents."""
        own = [Spending("histogram", self.histogram.guarantee)] if self.histogram else []
        return [*self.vocabulary.spendings, *own]

    def _documents(self, size: int) -> BagOfWords:
        """Return the documents' mechanism over a vocabulary of this size."""
        return self.parameters.mechanism(size, self.spec.compression.size or size)

    @property
    def expected_noise(self) -> Sequence[str]:
        found = notices.of_bags(self._foreseen, size_known=self.vocabulary.size is not None)
        if self.histogram:
            rate = self.histogram.epsilon / self.histogram.precision
            found.append(notices.of_histogram(rate))
        return [*found, *self.vocabulary.expected_noise]

    @property
    def verdict(self) -> str:
        return verdicts.of_bags(self._foreseen, size_known=self.vocabulary.size is not None)

    @property
    def _foreseen(self) -> BagOfWords:
        unknown = (self.spec.compression.size or 0) + 1  # stands in for the vocabulary's size
        return self._documents(self.vocabulary.size or unknown)

    @property
    def sample_words(self) -> Sequence[str]:
        return self.vocabulary.sample_words

    def account(self, files: Sequence[Written]) -> Account:
        size = rows_of(files, VOCABULARY)
        documents = self._documents(size)
        before = self._before
        spendings = [*before, Spending("documents", documents.guarantee)]
        total = compose(spendings)
        figure = None
        if documents.papers_epsilon != documents.guarantee.epsilon:
            others = sum((one.guarantee.epsilon for one in before), start=Fraction(0))
            figure = papers_figure(documents.papers_epsilon, others)
        resolved = {
            "vocabulary_size": size,
            "bins": documents.bins,
            "noise_rate": str(documents.rate),
        }
        limits = bag_limits(spendings, self.vocabulary.tokenizer.description)
        return Account(spendings, total, resolved, limits, figure)


def _compression(spec: BagOfWordsSpec, vectors: FileSource | None = None) -> Compression:
    given = spec.compression
    return Compression(given.method, given.size, vectors, given.assignment or Assignment.GREEDY)


def codebook_tables(codebook: Codebook, _: None = None) -> Tables:
    """Yield the tables of the vocabulary, and of the map if it has one."""
    yield from of_vocabulary(codebook.weights, codebook.vocabulary)
    if codebook.compresses:
        numbers = pa.array(range(len(codebook.bins)), pa.int32())
        table = pa.table({"term_id": numbers, "bin": pa.array(codebook.bins)})
        yield whole(COMPRESSION, table)


resolve = BagOfWordsKind.resolve
