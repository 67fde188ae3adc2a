"""The size of pool, and the first of two releases, that votes suffice for, in sentences.

Every number follows from public figures, as in `quietcorpus.pipelines.kinds.noise`.
"""

from __future__ import annotations

from fractions import Fraction

from quietcorpus.mechanisms.vote_room import largest_pool, least_rounds, least_voters
from quietcorpus.transforms.votes import Voting

from ..schema.public_texts import PublicTextsSpec

_MANY = 1_000  # documents, whose number is not known before the run


def of_room(voting: Voting, spec: PublicTextsSpec, voters: str) -> list[str]:
    """Say how large a pool may be, or how many documents it needs, and which rounds narrow it."""
    return [_of_pool(voting, spec.users, voters), *_of_rounds(voting)]


def few_users(voting: Voting, users: int) -> list[str]:
    """Say that no pool is small enough for so few users, if that is so."""
    votes, (strata, _) = voting.votes, voting.shape
    if voting.smooth or largest_pool(votes, users, strata) >= votes.nearest:
        return []
    return [
        f"mechanism.users: where the votes of about {users:,} users spread evenly, no text stands "
        f"out; {least_voters(votes, votes.nearest, strata):,} would be enough for a pool of "
        f"{votes.nearest:,} texts. Raise mechanism.epsilon, or lower mechanism.nearest"
    ]


def _of_pool(voting: Voting, users: int | None, voters: str) -> str:
    votes, (strata, texts) = voting.votes, voting.shape
    over = f"the pool and {strata:,} labels" if strata > 1 else "the pool"
    alone = " by their own votes alone" if voting.smooth else ""
    if users is not None:
        most = largest_pool(votes, users, strata)
        return (
            f"where votes spread evenly over {over}, texts stand out{alone} of a pool of at most "
            f"{most:,} by about {users:,} {voters}; this one has {texts:,}"
        )
    return (
        f"where votes spread evenly over {over}, texts stand out{alone} from about "
        f"{least_voters(votes, texts, strata):,} {voters} on; every {_MANY:,} {voters} suffice for "
        f"a pool of about {largest_pool(votes, _MANY, strata):,}"
    )


def _of_rounds(voting: Voting) -> list[str]:
    """Say which first release would narrow a public pool that has lists, if one would."""
    votes, (strata, texts) = voting.votes, voting.shape
    public = voting.pool.open().manifest.guarantee is None
    if voting.search is None or not public:
        return []
    of_a_list = Fraction(texts, voting.search.lists)
    found = least_rounds(votes, of_a_list, strata)
    if found is None:
        return []
    return [
        f"a first release at epsilon {float(found.first):g} suffices to narrow the pool to those "
        f"of its lists of about {float(of_a_list):,.0f} texts that stand out in a second one at "
        f"epsilon {float(found.second):g} (`quietcorpus index narrow-pool`)"
    ]
