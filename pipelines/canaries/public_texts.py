"""Canaries of public texts: documents, or users, whose votes no other canary shares."""

from __future__ import annotations

import secrets

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from quietcorpus.indexes.lsa import Lsa
from quietcorpus.indexes.pool import Pool
from quietcorpus.mechanisms.ballots import Ballots
from quietcorpus.mechanisms.pure_votes import PureVotes
from quietcorpus.pipelines.canaries.game import (
    Coins,
    Document,
    Game,
    Scores,
    apart_of,
    enough,
    of_user,
)
from quietcorpus.pipelines.card.loading import LoadedRelease
from quietcorpus.pipelines.evaluate.exact_votes import exact_sums
from quietcorpus.pipelines.kinds.public_texts_users import UserTextsKind
from quietcorpus.pipelines.kinds.public_texts_votes import PublicTextsKind
from quietcorpus.transforms.artefacts.encoder import Encoder
from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.reading.documents import Corpus, Documents
from quietcorpus.transforms.reading.sources import batches
from quietcorpus.transforms.users.votes import UserVoting
from quietcorpus.transforms.votes import AT_ONCE, Voting

_OF_A_USER = 8
"""Documents of a user, all alike: without a bound, they weigh eight times what they may."""


def game(kind: PublicTextsKind, canaries: int, corpus: Corpus) -> Game:
    """Return canaries that repeat texts of the pool; raises InputError for too many."""
    voting = kind.voting
    pool, encoder = voting.pool.open(), voting.encoder.open()
    texts, items = _apart(voting, pool, encoder, canaries)
    background = exact_sums(voting, batches(corpus), pool, encoder)
    stratum = _stratum(voting)

    def score(loaded: LoadedRelease, _: Coins) -> Scores:
        noisy = loaded.tables["votes"]["votes"].to_numpy().reshape(voting.shape)
        return _scores(voting.votes, (noisy - background)[stratum][items])

    pure = isinstance(voting.votes, PureVotes)
    cost, alike = kind.cost, _OF_A_USER if isinstance(kind, UserTextsKind) else 1
    return Game(
        [
            ([Document(text, _columns(voting, number))] * alike, [])
            for number, text in enumerate(texts)
        ],
        score,
        float(cost.epsilon),
        float(cost.delta),
        f"A canary is a {'user of eight equal documents' if alike > 1 else 'document'} that "
        "repeats a public text, and votes for texts that no other canary votes for. Its score is "
        "their noisy votes, less those of the corpus"
        f"{', by how likely they are with its own and without them' if pure else ''}.",
        None if pure else apart_of(cost),
        shows=float(cost.epsilon),
    )


def _scores(votes: Ballots, found: npt.NDArray[np.int64]) -> Scores:
    """Score canaries by the noise, with their votes or without, on the texts that each votes for.

    Args:
        votes: the mechanism.
        found: int64 (n, nearest), from each one's nearest text on.
    """
    given = np.array(votes.weights, dtype=np.float64)
    scores: Scores
    if isinstance(votes, PureVotes):  # the likelihood ratio's logarithm, over the noise's rate
        scores = (np.abs(found) - np.abs(found - given)).sum(axis=1)
    else:
        scores = (found * given).sum(axis=1) / votes.weight
    return scores


def _columns(voting: Voting, number: int) -> dict[str, str]:
    columns = {}
    if isinstance(voting, UserVoting):
        columns = of_user(voting.users, f"canary {secrets.token_hex(8)} {number}")
    if voting.strata is not None:
        columns.setdefault(voting.strata.column, voting.strata.labels[0])
    return columns


def _stratum(voting: Voting) -> int:
    """Return the number of the label that all canaries have; 0 if there are no labels.

    Raises InputError if a user of the largest budget has none.
    """
    if voting.strata is None:
        return 0
    label = _columns(voting, 0)[voting.strata.column]
    if label not in voting.strata.labels:
        raise InputError(
            "mechanism.strata.labels: no canary votes: the label of users of the largest budget is "
            f"not one of them; add {label}"
        )
    return voting.strata.labels.index(label)


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
