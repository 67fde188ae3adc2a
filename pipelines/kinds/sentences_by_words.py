"""The job of `kind: sentence-embeddings` by Madlib, the baseline: words replaced, then encoded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import apache_beam as beam

from quietcorpus.mechanisms.guarantees import MetricPrivacy
from quietcorpus.transforms.artefacts.candidates import CandidatesSource
from quietcorpus.transforms.privatizers.embedded_words import RUN_WORDS, EmbeddedWordsParameters
from quietcorpus.transforms.privatizers.words import WordMechanism
from quietcorpus.transforms.shards import Tally, Written

from ..card import model as card
from ..card.weakness import Weakness
from ..schema.sentences import SentencesSpec
from ..schema.words import WordsSpec
from .job import Job, release_documents
from .kind import Account, Kind
from .sentence_artefacts import on_the_card, public_artefacts
from .words import WordsKind


@dataclass(frozen=True)
class EmbeddedWordsKind(Kind):
    """The kind by Madlib, with its words' guarantee: all that follows is post-processing.

    Nothing is drawn from the candidates. They are named because the encoder must be theirs: only
    then are the two mechanisms comparable.
    """

    parameters: EmbeddedWordsParameters
    candidates: CandidatesSource
    words: WordsKind

    passes = 1
    laws = WordsKind.laws
    has_documents = True

    @classmethod
    def resolve(cls, spec: SentencesSpec) -> EmbeddedWordsKind:
        """Find the artefacts.

        Raises InputError for artefacts or an epsilon that cannot be used, or not together.
        """
        assert spec.index is not None
        source, encoder, manifest = public_artefacts(spec)
        words = WordsKind.resolve(
            WordsSpec.model_construct(  # its values were checked as this spec's
                kind="words",
                mechanism=WordMechanism.MADLIB,
                epsilon=spec.epsilon,
                index=spec.index,
                search=spec.search,
                tokenizer=None,  # the index's
            )
        )
        dimensions = int(manifest.encoder["dimensions"])
        parameters = EmbeddedWordsParameters(
            words.parameters, spec.most_sentences, encoder, dimensions
        )
        return cls(parameters, source, words)

    @property
    def computing(self) -> str:
        found = self.parameters.encoder.computing, self.words.computing
        return "; ".join(filter(None, found))

    @property
    def artefacts(self) -> Sequence[card.UsedArtefact]:
        return [*on_the_card(self.candidates, self.parameters.encoder), *self.words.artefacts]

    def build(self, pipeline: beam.Pipeline, job: Job) -> None:
        release_documents(pipeline, job, self.parameters)

    def check(self, tally: Tally) -> None:
        self.words.check(tally)

    def noticed(self, tally: Tally) -> Sequence[str]:
        return self.words.noticed(tally)

    @property
    def cost(self) -> MetricPrivacy:
        return self.words.cost

    @property
    def unit_scope(self) -> str:
        return self.words.unit_scope

    @property
    def weaknesses(self) -> Sequence[Weakness]:
        return self.words.weaknesses

    @property
    def expected_noise(self) -> Sequence[str]:
        return self.words.expected_noise

    @property
    def sample_words(self) -> Sequence[str]:
        return self.words.sample_words

    def account(self, files: Sequence[Written]) -> Account:
        account = self.words.account(files)
        parameters = self.parameters
        encoding = {
            "tokenizer": parameters.words.tokenizer.description,
            "out_of_vocabulary": parameters.words.out_of_vocabulary,
            "run_words": RUN_WORDS,
            "dimensions": parameters.dimensions,
            "encoder_precision": parameters.encoder.arithmetic,
            "encoder_software": parameters.encoder.software,
        }
        return replace(account, resolved={**account.resolved, **encoding})
