"""Canaries of public texts: documents, or users, whose votes no other canary shares."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from quietcorpus.indexes.lsa import Lsa
from quietcorpus.indexes.pool import Pool
from quietcorpus.mechanisms.ballots import Ballots
from quietcorpus.mechanisms.pure_votes import PureVotes
from quietcorpus.transforms.artefacts.encoder import Encoder
from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.reading.documents import Corpus, Documents
from quietcorpus.transforms.reading.sources import batches
from quietcorpus.transforms.users.votes import UserVoting
from quietcorpus.transforms.votes import AT_ONCE, Voting

from ..card.loading import LoadedRelease
from ..evaluate.exact_votes import exact_sums
from ..kinds.public_texts_users import UserTextsKind
from ..kinds.public_texts_votes import PublicTextsKind
from .game import (
    Coins,
    Document,
    Game,
    Scores,
    apart_of,
    by_turns,
    enough,
    of_user,
    weaker,
)

_OF_A_USER = 8
"""Documents of a user, all of one text: without a bound, they weigh eight times what they may."""


def game(kind: PublicTextsKind, canaries: int, corpus: Corpus) -> Game:
    """Return canaries that repeat texts of the pool; raises InputError for too many."""
    voting = kind.voting
    pool, encoder = voting.pool.open(), voting.encoder.open()
    texts, items = _apart(voting, pool, encoder, canaries)
    background = exact_sums(voting, batches(corpus), pool, encoder)
    groups = _groups(voting)
    voters = [_Voter.of(voting, number, groups) for number in range(canaries)]
    votes = [own.votes(voting, chosen) for own, chosen in zip(voters, items, strict=True)]

    def score(loaded: LoadedRelease, _: Coins) -> Scores:
        noisy = loaded.tables["votes"]["votes"].to_numpy().reshape(voting.shape)
        found = (noisy - background).ravel()
        return np.array([_score(voting.votes, found[places], own) for places, own in votes])

    gaussian = not isinstance(voting.votes, PureVotes)
    cost, of_users = kind.cost, isinstance(kind, UserTextsKind)
    return Game(
        [
            (own.documents(voting, text, f"canary {secrets.token_hex(8)} {number}"), [])
            for number, (own, text) in enumerate(zip(voters, texts, strict=True))
        ],
        score,
        float(cost.epsilon),
        float(cost.delta),
        f"A canary is a {'user of eight documents' if of_users else 'document'} "
        f"that {'repeat' if of_users else 'repeats'} a public text, and "
        f"{'vote' if of_users else 'votes'} for texts that no other canary votes for"
        f"{_by_turns(voting, groups)}. Its score is how likely their noisy votes, less those of "
        "the corpus, are with its own and without them.",
        apart_of(cost) if gaussian else None,
        shows=float(cost.epsilon),
        weaker=weaker(canaries, groups),
        own=[places for places, _ in votes] if gaussian else None,  # each sum has noise of its own
    )


def _by_turns(voting: Voting, groups: Sequence[int]) -> str:
    """Say what canaries take by turns."""
    taken = [*(["labels"] if voting.strata else []), *(["budgets"] if len(groups) > 1 else [])]
    return f", with {' and '.join(taken)} by turns" if taken else ""


@dataclass(frozen=True)
class _Voter:
    """The documents of a canary, all of one text: the number of each one's label, and its group."""

    labels: tuple[int, ...]
    group: int

    @classmethod
    def of(cls, voting: Voting, number: int, groups: Sequence[int]) -> _Voter:
        """Return the voter of a number; labels and groups take turns."""
        group = by_turns(number, groups)
        count = _OF_A_USER if isinstance(voting, UserVoting) else 1
        if voting.strata is None:
            return cls((0,) * count, group)
        if isinstance(voting, UserVoting) and _labels_are_groups(voting):
            label = voting.strata.labels.index(_group_name(voting, group))
            return cls((label,) * count, group)
        labels = len(voting.strata.labels)
        return cls(tuple((number + place) % labels for place in range(count)), group)

    def documents(self, voting: Voting, text: str, name: str) -> list[Document]:
        """Return its documents, for a user of that name."""
        columns: dict[str, str] = {}
        if isinstance(voting, UserVoting):
            columns = of_user(voting.users, name, self.group)
        if voting.strata is None:
            return [Document(text, columns)] * len(self.labels)
        column, names = voting.strata.column, voting.strata.labels
        return [Document(text, {column: names[label]} | columns) for label in self.labels]

    def votes(
        self, voting: Voting, items: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """Return the places of its votes among all sums, and the votes, int64 and float64 (n,)."""
        labels, counts = np.unique(self.labels, return_counts=True)
        every = np.ravel_multi_index(np.ix_(labels, items), voting.shape).ravel()
        found = np.outer(counts, voting.votes.weights).ravel().astype(np.float64)
        if isinstance(voting, UserVoting):
            most = tuple(voting.norms.most.values())[self.group]
            order = 1 if isinstance(voting.votes, PureVotes) else 2
            found *= min(1.0, float(most / np.linalg.norm(found, order)))
        return every, found


def _score(votes: Ballots, found: npt.NDArray[np.int64], own: npt.NDArray[np.float64]) -> float:
    """Compute how much likelier a canary's noisy votes are with its own votes than without them.

    It is the logarithm of the likelihoods' ratio, over a constant of the noise.
    """
    if isinstance(votes, PureVotes):
        return float((np.abs(found) - np.abs(found - own)).sum())
    return float((found * own).sum() - (own * own).sum() / 2)


def _labels_are_groups(voting: UserVoting) -> bool:
    return voting.strata is not None and voting.strata.column == voting.users.group_column


def _group_name(voting: UserVoting, group: int) -> str:
    """Return what the documents of a group's users have in the column of groups."""
    column = voting.users.group_column
    return of_user(voting.users, "", group)[column] if column else ""


def _groups(voting: Voting) -> list[int]:
    """Return the numbers of the groups that canaries may be of; one if there are no groups.

    Raises InputError if users of the largest budget have no label that counts.
    """
    if not isinstance(voting, UserVoting):
        return [0]
    groups = [number for number, most in enumerate(voting.norms.most.values()) if most]
    if not _labels_are_groups(voting):
        return groups
    assert voting.strata is not None
    listed = [own for own in groups if _group_name(voting, own) in voting.strata.labels]
    if groups[-1] not in listed:
        raise InputError(
            "mechanism.strata.labels: no canary votes: the label of users of the largest budget is "
            f"not one of them; add {_group_name(voting, groups[-1])}"
        )
    return listed


def _apart(
    voting: Voting, pool: Pool, encoder: Encoder | Lsa, canaries: int
) -> tuple[list[str], npt.NDArray[np.int64]]:
    """Return texts of the pool in a random order, and what each votes for, int64 (n, nearest).

    No two of them vote for the same text. Raises InputError if there are not so many.
    """
    enough(canaries, len(pool.texts) // voting.votes.nearest, "the pool's texts")
    order = np.random.default_rng().permutation(len(pool.texts))
    taken = np.zeros(len(pool.texts), dtype=np.bool_)
    texts: list[str] = []
    items: list[npt.NDArray[np.int64]] = []
    for start in range(0, len(order), AT_ONCE):
        some = pool.texts.take(pa.array(order[start : start + AT_ONCE]))
        documents = Documents("", np.arange(len(some)), some, pa.table({}))
        voters, ballots = voting.ballots(documents, np.arange(len(some)), pool, encoder)
        for voter, ballot in zip(voters, ballots, strict=True):
            if len(texts) < canaries and not taken[ballot].any():
                taken[ballot] = True
                texts.append(some[int(voter)].as_py())
                items.append(ballot)
        if len(texts) == canaries:
            break
    enough(canaries, len(texts), "the pool's texts")
    return texts, np.stack(items)
