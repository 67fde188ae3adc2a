"""The job of `kind: word-embeddings` with `method: cooccurrence`: one release of noisy counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import apache_beam as beam
import numpy as np

from quietcorpus.mechanisms.accounting import epsilon_of, noise_multiplier_for, share_for
from quietcorpus.mechanisms.clipped_sum import STEPS, ClippedSum
from quietcorpus.mechanisms.cooccurrence import cells_of
from quietcorpus.mechanisms.factorisation import factorise
from quietcorpus.mechanisms.guarantees import Spending, UserPrivacy, compose
from quietcorpus.pipelines.card import model as card
from quietcorpus.pipelines.card.weakness import Weakness, of_left_out
from quietcorpus.pipelines.kinds.embeddings_users import (
    UserCorpus,
    staged_table,
    versions_of,
    words_in,
)
from quietcorpus.pipelines.kinds.job import Job
from quietcorpus.pipelines.kinds.kind import Account, Kind
from quietcorpus.pipelines.spec.embeddings import WordEmbeddingsSpec
from quietcorpus.pipelines.storage import files as storage
from quietcorpus.pipelines.storage import layout
from quietcorpus.pipelines.storage.layout import TABLE
from quietcorpus.transforms.errors import InputError, StageError
from quietcorpus.transforms.shards import Tally, Written
from quietcorpus.transforms.users.cooccurrence import (
    FOLDER,
    Cooccurrences,
    ReleaseCooccurrences,
    refuse_large,
)

_LEAST_ON_NOISE = 1_000
"""Users to a standard deviation of the noise: with 715 vectors were measured at chance."""


@dataclass(frozen=True)
class CountedEmbeddingsKind(Kind):
    """The kind, with its noise and its users' norms solved."""

    corpus: UserCorpus
    counting: Cooccurrences

    has_documents = False

    @classmethod
    def resolve(cls, spec: WordEmbeddingsSpec) -> CountedEmbeddingsKind:
        """Raises InputError for a vocabulary or a budget that cannot be used."""
        corpus = UserCorpus.resolve(spec)
        refuse_large(corpus.size or 0)
        budgets = corpus.budgets
        try:
            noise = noise_multiplier_for(max(budgets.values()), corpus.delta, Fraction(1), 1)
        except ValueError as error:
            raise InputError(f"{corpus.key}: {error}") from None
        shares = [share_for(epsilon, corpus.delta, noise) for epsilon in budgets.values()]
        most = tuple(int(share * STEPS) for share in shares)
        corpus.warn_of_idle(name for name, own in zip(budgets, most, strict=True) if not own)
        made = cls(corpus, Cooccurrences(spec.window, most, ClippedSum(noise), corpus.users))
        corpus.refuse_few(made.on_noise, _LEAST_ON_NOISE)
        return made

    @property
    def on_noise(self) -> float:
        """Users to a standard deviation of the noise, in units of what one of them adds."""
        return float(self.corpus.spec.users / self.counting.mechanism.noise_multiplier)

    @property
    def passes(self) -> int:
        """How often every document is read."""
        return 1 + (self.corpus.selection is not None)

    @property
    def computing(self) -> str:
        """What accounts and draws."""
        return versions_of("dp-accounting", "python-flint")

    @property
    def artefacts(self) -> Sequence[card.Artefact]:
        """The vocabulary, if it is public."""
        return self.corpus.artefacts

    def build(self, pipeline: beam.Pipeline, job: Job) -> None:
        """Add the job to a pipeline: everything but the factorisation."""
        words, gathered = self.corpus.gathered(pipeline, job)
        files = gathered["shares"] | "cooccurrences" >> ReleaseCooccurrences(
            self.counting, words, self.corpus.shards, job.key, job.staging
        )
        self.corpus.write(pipeline, job, words, gathered, files)

    def check(self, tally: Tally) -> None:
        """Refuse a corpus in another language than the vocabulary's."""
        self.corpus.check(tally)

    def finish(self, job: Job, files: Sequence[Written]) -> Sequence[Written]:
        """Factorise the noisy counts, and write the vectors of the words that they support."""
        key = job.key()
        words = words_in(files, key)
        blocks = sorted((f for f in files if f.path.startswith(f"{FOLDER}/")), key=lambda f: f.path)
        counts = np.concatenate([staged_table(f, key)["count"].to_numpy() for f in blocks])
        if len(counts) != cells_of(len(words)):
            raise StageError("the engine lost or doubled a block of counts; run again")
        deviation = float(self.counting.mechanism.deviation)
        found = factorise(counts, deviation, len(words), self.corpus.spec.dimensions)
        dimensions = self.corpus.spec.dimensions
        if found.supported.sum() < 2:
            raise InputError(
                "mechanism.vocabulary: no pair of its words stands out of the noise; give fewer "
                "words, more users or a larger epsilon"
            )
        kept = np.asarray(found.vectors.any(axis=1))
        if kept.sum() < 2:
            raise InputError(
                f"mechanism.dimensions: {dimensions} are too few for any two words; give more"
            )
        listed = [word for word, own in zip(words, kept, strict=True) if own]
        return self.corpus.publish(job, listed, found.vectors[kept], self.spendings)

    @property
    def spendings(self) -> list[Spending[UserPrivacy]]:
        """What each stage cost."""
        noise = self.counting.mechanism.noise_multiplier
        spent = {
            name: epsilon_of(Fraction(1), noise * STEPS / most, 1, self.corpus.delta)
            if most
            else Fraction(0)
            for name, most in zip(self.corpus.budgets, self.counting.most, strict=True)
        }
        return self.corpus.spendings("cooccurrences", spent)

    @property
    def cost(self) -> UserPrivacy:
        """All stages together."""
        return compose(self.spendings)

    @property
    def weaknesses(self) -> Sequence[Weakness]:
        """What makes its guarantee mean little, and its users too few."""
        return self.corpus.weaknesses(self.cost, self.on_noise, _LEAST_ON_NOISE)

    def shown(self, made: Sequence[Written], files: Sequence[Written]) -> Sequence[Weakness]:
        """Whether the noisy counts leave out much of the vocabulary."""
        return of_left_out(storage.rows_of(files, TABLE), storage.rows_of(made, layout.VOCABULARY))

    @property
    def unit_scope(self) -> str:
        """What a user is says the column."""
        return self.corpus.unit_scope

    def account(self, files: Sequence[Written]) -> Account:
        """What the counts cost."""
        spendings = self.spendings
        total = compose(spendings)
        resolved = {
            "vocabulary_size": storage.rows_of(files, TABLE),
            "noise_multiplier": str(self.counting.mechanism.noise_multiplier),
            "norms": dict(zip(self.corpus.budgets, self.counting.most, strict=True)),
            "software": self.computing,
        }
        return Account(spendings, total, resolved, self.corpus.not_protected)
