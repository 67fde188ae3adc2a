"""The parts that the kinds under limited-precision local privacy share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType

import apache_beam as beam

from quietcorpus.indexes.tokens.tokenizers import Tokenizer
from quietcorpus.indexes.tokens.vocabulary import Vocabulary, some_of
from quietcorpus.mechanisms.accounting.guarantees import LimitedPrecision, Spending, compose
from quietcorpus.mechanisms.bags.histogram import Histogram, ThresholdedVocabulary
from quietcorpus.mechanisms.noise.geometric import TwoSidedGeometric
from quietcorpus.transforms.artefacts.files import FileSource
from quietcorpus.transforms.histogram import HistogramOfSplits
from quietcorpus.transforms.reading.documents import Split
from quietcorpus.transforms.reading.identifiers import TAG
from quietcorpus.transforms.run_files import WriteRunFiles, WriteTables
from quietcorpus.transforms.shards import TALLIES, Tally, Written
from quietcorpus.transforms.vocabulary import VocabularyOfSplits, listed, load

from ...card import model as card
from ...card import statements
from ...jobs import notices, verdicts
from ...jobs.job import Job, of_vocabulary, refuse_repeated, splits_of
from ...jobs.kind import Account, Kind
from ...schema.blocks import tokenizer_of
from ...storage.files import rows_of
from ...storage.layout import VOCABULARY
from .card import limits_of
from .spec import HistogramSpec, LimitedPrecisionSpec


@dataclass(frozen=True)
class VocabularyStep:
    """The vocabulary: a public list, or selected privately from the corpus.

    Attributes:
        public: the list, if it is one.
        selection: the selection, if it is not.
        size: the public list's number of terms.
        tokenizer: the tokeniser of the texts.
    """

    public: FileSource | None
    selection: ThresholdedVocabulary | None
    size: int | None
    tokenizer: Tokenizer

    @classmethod
    def resolve(cls, spec: LimitedPrecisionSpec) -> VocabularyStep:
        """Prepare the step before anything runs; raises InputError for an unusable list."""
        tokenizer = tokenizer_of(spec.tokenizer)
        private = spec.vocabulary.private
        if private is not None:
            selected = ThresholdedVocabulary(spec.precision, private.epsilon, private.delta)
            return cls(None, selected, None, tokenizer)
        assert spec.vocabulary.public is not None
        artefact = FileSource.resolve("mechanism.vocabulary.public", spec.vocabulary.public)
        notices.require_rule(artefact, tokenizer)
        return cls(artefact, None, len(load(artefact, tokenizer)), tokenizer)

    @property
    def unit_scope(self) -> str:
        """Return what defines a token, the unit of protection."""
        return f"tokens of {self.tokenizer.title}"

    @property
    def passes(self) -> int:
        """Return how many times the step reads every document."""
        return int(self.selection is not None)

    @property
    def spendings(self) -> list[Spending[LimitedPrecision]]:
        """Return the cost of the step."""
        return [Spending("vocabulary", self.selection.guarantee)] if self.selection else []

    @property
    def expected_noise(self) -> list[str]:
        """Return what the noise does to a private vocabulary."""
        return [notices.of_threshold(self.selection.threshold)] if self.selection else []

    @property
    def sample_words(self) -> Sequence[str]:
        """Return some words of a public list; of a private one, nothing is known before the run."""
        return some_of(load(self.public, self.tokenizer)) if self.public else ()

    @property
    def artefacts(self) -> list[card.UsedArtefact]:
        """Return the list, if it is public."""
        return [statements.public_artefact("vocabulary", self.public)] if self.public else []

    def build(
        self, pipeline: beam.Pipeline, splits: beam.PCollection[Split], job: Job
    ) -> tuple[beam.PCollection[Vocabulary], list[beam.PCollection[Tally]]]:
        """Build a collection of one `Vocabulary`, and the tallies of its pass, if it takes one."""
        if self.selection is None:
            return listed(pipeline, self.public, self.tokenizer), []
        selected = splits | "vocabulary" >> VocabularyOfSplits(
            job.corpus, self.selection, job.key, len(job.plan.splits), self.tokenizer
        )
        return selected["vocabulary"], [selected[TALLIES]]


class LimitedPrecisionKind(Kind):
    """A kind whose releases say which words there are: all of them begin with a vocabulary."""

    vocabulary: VocabularyStep

    @property
    def computing(self) -> str:
        return self.vocabulary.tokenizer.software

    @property
    def unit_scope(self) -> str:
        return self.vocabulary.unit_scope

    @property
    def noise_decides(self) -> bool:
        return self.vocabulary.selection is not None

    def noticed(self, tally: Tally) -> Sequence[str]:
        return notices.noticed_of_list(self.vocabulary.public, tally.frequent)


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
        released = splits | "histogram" >> HistogramOfSplits(
            job.corpus,
            vocabulary,
            self.histogram,
            job.key,
            len(job.plan.splits),
            job.rejects,
            job.corpus.id,
        )
        files = released["weights"] | "write" >> beam.ParDo(
            WriteTables(job.staging, job.key, of_vocabulary), vocabulary
        )
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
        return [notices.of_histogram(self._rate), *self.vocabulary.expected_noise]

    @property
    def verdict(self) -> str:
        size = TwoSidedGeometric(self._rate).mean_size
        chosen = self.vocabulary.selection
        return verdicts.of_histogram(size, "documents", chosen.threshold if chosen else None)

    @property
    def _rate(self) -> Fraction:
        return self.spec.epsilon / self.spec.precision

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
