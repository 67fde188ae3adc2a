"""The parts that the kinds under limited-precision local privacy share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import apache_beam as beam

from quietcorpus.indexes.tokenizers import Tokenizer
from quietcorpus.indexes.vocabulary import Vocabulary, some_of
from quietcorpus.mechanisms.guarantees import LimitedPrecision, Spending
from quietcorpus.mechanisms.histogram import ThresholdedVocabulary
from quietcorpus.transforms.artefacts.files import FileSource
from quietcorpus.transforms.reading.documents import Split
from quietcorpus.transforms.shards import TALLIES, Tally
from quietcorpus.transforms.vocabulary import SelectVocabulary, load

from ..card import model as card
from ..card import statements
from ..schema.limited_precision import LimitedPrecisionSpec
from ..schema.tokenizers import tokenizer_of
from . import languages, noise
from .job import Job
from .kind import Kind


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
        languages.require_rule(artefact, tokenizer)
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
        return [noise.of_threshold(self.selection.threshold)] if self.selection else []

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
            listed = pipeline | "public vocabulary" >> beam.Create([self.public])
            return listed | "load" >> beam.Map(load, self.tokenizer), []
        selected = splits | "vocabulary" >> SelectVocabulary(
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
        return languages.noticed_of_list(self.vocabulary.public, tally.frequent)
