"""The job of `kind: sentence-embeddings` by Madlib: the baseline, word by word, then encoded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import apache_beam as beam

from indexes.candidates import Manifest
from pipelines import card
from pipelines.job import Job, release_documents
from pipelines.kind import Account
from pipelines.manifest import WriteManifest
from pipelines.sentences import encoding, on_the_card, public_artefacts
from pipelines.spec_mechanisms import SentencesSpec, WordsSpec
from pipelines.words import WordsKind
from transforms.candidates import CandidatesSource
from transforms.embedded_words import EmbeddedWordsParameters
from transforms.shards import TALLIES, Tally, Written
from transforms.words import WordMechanism


@dataclass(frozen=True)
class EmbeddedWordsKind:
    """The kind, whose guarantee is its words': all that follows is post-processing.

    Candidates are not released from; they say how sentences are found and encoded, so that their
    own mechanism can be compared.
    """

    parameters: EmbeddedWordsParameters
    candidates: CandidatesSource
    manifest: Manifest
    words: WordsKind

    passes = 1
    has_documents = True

    @classmethod
    def found(cls, spec: SentencesSpec) -> EmbeddedWordsKind:
        """Raises InputError for artefacts or an epsilon that cannot be used, or not together."""
        assert spec.index is not None
        words = WordsKind.found(
            WordsSpec.model_construct(  # its values were checked as this spec's
                kind="words",
                mechanism=WordMechanism.MADLIB,
                epsilon=spec.epsilon,
                index=spec.index,
            )
        )
        source, encoder, manifest = public_artefacts(spec)
        parameters = EmbeddedWordsParameters(
            words.parameters,
            spec.most_sentences,
            manifest.language,
            encoder,
            int(manifest.encoder["dimensions"]),
        )
        return cls(parameters, source, manifest, words)

    @property
    def artefacts(self) -> Sequence[card.Artefact]:
        """The candidates, the encoder and the word index."""
        return [*on_the_card(self.candidates, self.parameters.encoder), *self.words.artefacts]

    def build(self, pipeline: beam.Pipeline, job: Job) -> None:
        """Add the job to a pipeline."""
        documents = release_documents(pipeline, job, self.parameters)
        (documents.files, documents[TALLIES]) | "manifest" >> WriteManifest(job.staging)

    def check(self, tally: Tally) -> None:
        """Refuse a corpus in another language than the index's."""
        self.words.check(tally)

    def account(self, files: Sequence[Written]) -> Account:
        """What the words' replacement cost."""
        account = self.words.account(files)
        sentences = (
            "how a document is divided into sentences, up to "
            f"{self.parameters.most_sentences}, and how many words that the index knows are in "
            "each: versions of it that are divided otherwise are told apart; sentences beyond "
            "have no part in the release"
        )
        return replace(
            account,
            resolved={**account.resolved, **encoding(self.manifest, self.parameters.encoder)},
            not_protected=[sentences, *account.not_protected],
        )
