"""The job of `kind: public-texts` where all documents of a user are protected together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import apache_beam as beam

from quietcorpus.mechanisms.filters import Concentrated
from quietcorpus.mechanisms.group_norms import GroupNorms
from quietcorpus.mechanisms.guarantees import UserPrivacy
from quietcorpus.mechanisms.pure_votes import PureNorms, PureVotes
from quietcorpus.transforms.users.training_shards import shards_for
from quietcorpus.transforms.users.votes import ReleaseUserVotes, UserVoting

from ..card.public_texts import user_text_limits
from ..card.weakness import Weakness, of_guarantee, of_users
from ..schema.public_texts import PublicTextsSpec
from .job import Job
from .public_texts_votes import (
    PublicTextsKind,
    votes_by,
    voting_by,
)
from .user_budgets import BudgetedUsers
from .vote_room import few_users

_PLACES = 1_000
"""About how many texts a user votes for, where users are divided among workers."""


@dataclass(frozen=True)
class UserTextsKind(PublicTextsKind):
    """The kind `public-texts` with users, whose norms are computed as well."""

    users: BudgetedUsers
    voting: UserVoting

    @classmethod
    def resolve(cls, spec: PublicTextsSpec) -> UserTextsKind:
        """Compute the noise and the norms, and find the pool and the encoder.

        Raises InputError for budgets that take too much noise, and as `voting_by` does.
        """
        users = BudgetedUsers(spec)
        norms: GroupNorms | PureNorms
        if spec.is_pure:
            votes = votes_by(spec, max(users.budgets.values()), users.key)
            assert isinstance(votes, PureVotes)
            norms = PureNorms.solved(users.budgets, votes)
        else:
            norms = users.norms()
            votes = votes_by(spec, max(users.budgets.values()), users.key)
        found = vars(voting_by(spec, votes))
        return cls(spec, UserVoting(**found, users=users.named_users, norms=norms), users)

    @property
    def laws(self) -> Mapping[str, int]:
        return {"users": 1, "votes of users": 1, **super().laws}

    @property
    def counts_records(self) -> bool:
        """Return that no numbers are stated: they would tell of one user's documents."""
        return False

    @property
    def unit_scope(self) -> str:
        return self.users.unit_scope

    @property
    def weaknesses(self) -> Sequence[Weakness]:
        total, users = self.cost, self.spec.users
        assert users is not None
        return [*of_users(total.delta, users), *of_guarantee(total, self.artefacts)]

    @property
    def doubts(self) -> Sequence[str]:
        assert self.spec.users is not None
        return [
            *self.users.doubts_of_idle(self.voting.norms.idle),
            *few_users(self.voting, self.spec.users),
        ]

    def release(self, job: Job) -> beam.PTransform:
        """Return the transform from splits to noisy sums over users."""
        assert self.spec.users is not None
        shards = shards_for(self.spec.users, _PLACES)
        return ReleaseUserVotes(job.corpus, self.voting, job.key, shards, job.rejects)

    @property
    def cost(self) -> UserPrivacy:
        return self.users.promise(self.voting.norms.spent)

    @property
    def concentrated(self) -> Concentrated | None:
        return self.voting.norms.concentrated

    @property
    def voters(self) -> str:
        """Return who votes, in the plural."""
        return "users of the largest budget" if self.spec.budgets else "users"

    @property
    def limits(self) -> Sequence[str]:
        """Return what a reader may learn, beyond what every kind of release reveals."""
        budgets = self.spec.budgets
        named = None if budgets is None else bool(budgets.epsilon)
        return user_text_limits(named, is_narrowed=self.is_narrowed)

    @property
    def resolved(self) -> dict[str, Any]:
        """Return the card's fields on the mechanism, besides the spec's block."""
        return {**super().resolved, "norms": dict(self.voting.norms.most)}
