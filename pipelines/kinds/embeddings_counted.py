"""The job of `kind: word-embeddings` with `method: cooccurrence`: one release of noisy counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType

import apache_beam as beam
import numpy as np
import numpy.typing as npt

from quietcorpus.mechanisms.cooccurrence import cells_of
from quietcorpus.mechanisms.factorisation import factorise
from quietcorpus.mechanisms.filters import Concentrated
from quietcorpus.mechanisms.group_norms import GroupNorms
from quietcorpus.mechanisms.guarantees import Spending, UserPrivacy, compose
from quietcorpus.transforms.errors import NoisyOutcome, StageError
from quietcorpus.transforms.shards import Written
from quietcorpus.transforms.users.cooccurrence import (
    FOLDER,
    Cooccurrences,
    ReleaseCooccurrences,
    refuse_large,
)

from ..card.embeddings import LEAST_ON_NOISE
from ..card.weakness import Weakness, of_left_out
from ..schema.embeddings import WordEmbeddingsSpec
from ..storage import files as storage
from ..storage import layout
from ..storage.layout import TABLE
from .embeddings_users import (
    UserCorpus,
    staged_table,
    versions_of,
    words_in,
)
from .job import Job
from .kind import Account
from .user_level import UserLevelKind


@dataclass(frozen=True)
class CountedEmbeddingsKind(UserLevelKind):
    """The kind `word-embeddings` by `method: cooccurrence`, with its noise and norms computed."""

    norms: GroupNorms

    least_on_noise = LEAST_ON_NOISE["cooccurrence"]
    laws = MappingProxyType(
        {
            "users": 1,
            "words of users": 1,
            "vocabulary": 1,
            "texts of users": 1,
            "clipping": 1,
            "cooccurrences": 1,
        }
    )

    def __post_init__(self) -> None:
        self.corpus.users.require_groups(self.norms.most)

    @classmethod
    def resolve(cls, spec: WordEmbeddingsSpec) -> CountedEmbeddingsKind:
        """Compute noise and norms; raises InputError for an unusable vocabulary or budget."""
        corpus = UserCorpus.resolve(spec)
        refuse_large(corpus.size or 0)
        made = cls(corpus, corpus.norms())
        made.refuse_few()
        return made

    @property
    def on_noise(self) -> float:
        """Return the users per standard deviation of the noise, in units of one user's share."""
        return float(self.corpus.spec.users / self.norms.mechanism.noise_multiplier)

    @property
    def doubts(self) -> Sequence[str]:
        return self.corpus.doubts_of_idle(self.norms.idle)

    @property
    def computing(self) -> str:
        parts = versions_of("dp-accounting", "python-flint"), self.corpus.tokenizer.software
        return "; ".join(filter(None, parts))

    @property
    def counting(self) -> Cooccurrences:
        """Return the parameters of the counts and of their noise."""
        users, window = self.corpus.users, self.corpus.spec.window
        most = tuple(self.norms.most[name] for name in users.groups)
        return Cooccurrences(window, most, self.norms.mechanism, users)

    def build(self, pipeline: beam.Pipeline, job: Job) -> None:
        """Add the job to a pipeline, without the factorisation, which is the launcher's."""
        words, gathered = self.corpus.gathered(pipeline, job)
        files = gathered["shares"] | "cooccurrences" >> ReleaseCooccurrences(
            self.counting, words, self.corpus.shards, job.key, job.staging
        )
        self.corpus.write(pipeline, job, words, gathered, files)

    def finish(self, job: Job, files: Sequence[Written]) -> Sequence[Written]:
        """Factorise the noisy counts, and write the vectors of the words that they support."""
        key = job.key()
        words = words_in(files, key)
        blocks = sorted((f for f in files if f.path.startswith(f"{FOLDER}/")), key=lambda f: f.path)
        counts = np.concatenate([staged_table(f, key)["count"].to_numpy() for f in blocks])
        return self.write_vectors(job, *self.learned(words, counts))

    def learned(
        self, words: Sequence[str], counts: npt.NDArray[np.int64]
    ) -> tuple[list[str], npt.NDArray[np.float32]]:
        """Factorise the noisy counts; return the words that they support, and their vectors.

        Raises NoisyOutcome if that leaves no two words.
        """
        if len(counts) != cells_of(len(words)):
            raise StageError("the engine lost or doubled a block of counts; run again")
        deviation = float(self.norms.mechanism.deviation)
        found = factorise(counts, deviation, len(words), self.corpus.spec.dimensions)
        dimensions = self.corpus.spec.dimensions
        if found.supported.sum() < 2:
            raise NoisyOutcome(
                "mechanism.vocabulary: no pair of its words stands out of the noise; give fewer "
                "words, more users or a larger epsilon"
            )
        kept = np.asarray(found.vectors.any(axis=1))
        if kept.sum() < 2:
            raise NoisyOutcome(
                f"mechanism.dimensions: {dimensions} are too few for any two words; give more"
            )
        listed = [word for word, own in zip(words, kept, strict=True) if own]
        return listed, found.vectors[kept]

    @property
    def spendings(self) -> list[Spending[UserPrivacy]]:
        """Return the cost of each stage."""
        return self.corpus.spendings("cooccurrences", self.norms.spent)

    @property
    def concentrated(self) -> Concentrated:
        return self.corpus.concentrated(self.norms.concentrated)

    def shown(self, made: Sequence[Written], files: Sequence[Written]) -> Sequence[Weakness]:
        return of_left_out(storage.rows_of(files, TABLE), storage.rows_of(made, layout.VOCABULARY))

    def account(self, files: Sequence[Written]) -> Account:
        spendings = self.spendings
        total = compose(spendings)
        resolved = {
            "vocabulary_size": storage.rows_of(files, TABLE),
            "noise_multiplier": str(self.norms.mechanism.noise_multiplier),
            "norms": dict(self.norms.most),
            "software": self.computing,
        }
        return Account(spendings, total, resolved, self.corpus.not_protected)
