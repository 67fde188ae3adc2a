"""The parts that both kinds under user-level privacy share, beside their users."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from quietcorpus.mechanisms.guarantees import Spending, UserPrivacy, compose
from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.shards import Tally, Written

from ..card import model as card
from ..card import statements
from ..card.weakness import Weakness, of_guarantee, of_noise, of_users
from . import languages, noise
from .embeddings_files import write_embeddings
from .embeddings_users import UserCorpus
from .job import Job
from .kind import Kind


@dataclass(frozen=True)
class UserLevelKind(Kind):
    """A kind that protects whole users, by either method.

    Attributes:
        corpus: the users and their vocabulary.
        least_on_noise: the users that the method needs per standard deviation of the noise.
    """

    corpus: UserCorpus
    least_on_noise: ClassVar[int]

    has_documents = False

    @property
    @abstractmethod
    def on_noise(self) -> float:
        """Return the users per standard deviation of the noise, in units of one user's most."""

    @property
    @abstractmethod
    def spendings(self) -> list[Spending[UserPrivacy]]:
        """Return the cost of each stage."""

    def refuse_few(self) -> None:
        """Raise InputError if users are too few for the noise, unless the spec accepts that."""
        spec = self.corpus.spec
        for said, remedy, _ in of_noise(spec.users, self.on_noise, self.least_on_noise):
            if spec.few_users is None:
                raise InputError(f"mechanism.users: {said}; {remedy}, or say `few_users: accept`")

    @property
    def passes(self) -> int:
        return 1 + (self.corpus.selection is not None)

    @property
    def artefacts(self) -> Sequence[card.UsedArtefact]:
        return self.corpus.artefacts

    @property
    def cost(self) -> UserPrivacy:
        return compose(self.spendings)

    @property
    def unit_scope(self) -> str:
        return self.corpus.unit_scope

    @property
    def noise_decides(self) -> bool:
        return True

    @property
    def weaknesses(self) -> Sequence[Weakness]:
        total, users = self.cost, self.corpus.spec.users
        return [
            *of_users(total.delta, users),
            *of_guarantee(total, self.artefacts),
            *of_noise(users, self.on_noise, self.least_on_noise),
        ]

    @property
    def expected_noise(self) -> Sequence[str]:
        return [noise.of_users(self.on_noise, self.least_on_noise)]

    def check(self, tally: Tally) -> None:
        if not tally.known:
            raise InputError(
                "mechanism.vocabulary: no document has a word of it; check input.text and the "
                "vocabulary's language"
            )

    def noticed(self, tally: Tally) -> Sequence[str]:
        return languages.noticed_of_list(self.corpus.public, tally.frequent)

    def write_vectors(
        self, job: Job, words: Sequence[str], vectors: npt.NDArray[np.float32]
    ) -> list[Written]:
        """Write the vectors of the words, float32 (n, d), in every form."""
        promise = statements.guarantee(self.cost, [], self.artefacts)
        return write_embeddings(
            words, vectors, promise, self.corpus.tokenizer, job.staging, job.key()
        )
