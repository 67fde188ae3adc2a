"""The exact votes of documents or users for public texts, in memory, before any noise."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from quietcorpus.indexes.lsa import Lsa
from quietcorpus.indexes.pool import Pool
from quietcorpus.mechanisms.ballots import Sums
from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.transforms.artefacts.encoder import Encoder
from quietcorpus.transforms.reading.documents import Documents
from quietcorpus.transforms.users.users import NO_BUDGET
from quietcorpus.transforms.users.votes import Share, UserVoting, joined
from quietcorpus.transforms.votes import AT_ONCE, Voting


def votes_of_units(
    voting: Voting, batches: Iterable[Documents], pool: Pool, encoder: Encoder | Lsa
) -> sp.csr_array:
    """Return the votes of every unit that votes, int64 (n, strata * texts).

    A unit is a document, or a user with all of these documents, whose votes are clipped.
    """
    if isinstance(voting, UserVoting):
        return _stacked(list(_of_users(voting, batches, pool, encoder)), voting)
    rows = []
    for part in _parts(batches):
        strata = voting.strata_of(part)
        voters, items = voting.ballots(part, np.flatnonzero(strata >= 0), pool, encoder)
        rows += list(voting.votes.places(items, strata[voters], voting.shape))
    return _stacked(
        [(places, np.array(voting.votes.weights, dtype=np.int64)) for places in rows], voting
    )


def exact_sums(
    voting: Voting, batches: Iterable[Documents], pool: Pool, encoder: Encoder | Lsa
) -> Sums:
    """Add up the votes of a corpus, as they are before the noise: int64 (strata, texts)."""
    sums = np.zeros(voting.shape, dtype=np.int64)
    if isinstance(voting, UserVoting):
        for places, votes in _of_users(voting, batches, pool, encoder):
            sums.ravel()[places] += votes  # distinct places
        return sums
    for part in _parts(batches):
        sums += voting.sums(part, pool, encoder)
    return sums


def _of_users(
    voting: UserVoting, batches: Iterable[Documents], pool: Pool, encoder: Encoder | Lsa
) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    key = ReleaseKey.fresh()
    found: dict[bytes, list[Share]] = defaultdict(list)
    for user, share in voting.shares(_parts(batches), pool, encoder, key):
        found[user] = [joined([*found[user], share])]
    stream = voting.clipping(key)
    for user, (share,) in found.items():
        if share[0] != NO_BUDGET:
            yield voting.clipped(user, share, stream)


def _parts(batches: Iterable[Documents]) -> Iterator[Documents]:
    for documents in batches:
        yield from documents.parts(AT_ONCE)


def _stacked(
    rows: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]], voting: Voting
) -> sp.csr_array:
    """Return the rows of units that vote at all."""
    some = [row for row in rows if len(row[0])]
    nothing = np.empty(0, np.int64)
    places = np.concatenate([nothing, *(own for own, _ in some)])
    votes = np.concatenate([nothing, *(own for _, own in some)])
    offsets = np.cumsum([0, *(len(own) for own, _ in some)])
    return sp.csr_array((votes, places, offsets), (len(some), int(np.prod(voting.shape))))
