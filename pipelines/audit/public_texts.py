"""Audits of public texts, whose votes protect a document, or all documents of a user."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import partial

import numpy as np
import numpy.typing as npt

from quietcorpus.evaluation.audits.accounting import epsilon_recomputed
from quietcorpus.evaluation.audits.findings import Exact, Sampled
from quietcorpus.evaluation.audits.lower_bound import epsilon_at_least
from quietcorpus.mechanisms.accounting import LARGEST_NOISE, epsilon_of, noise_multiplier_for
from quietcorpus.mechanisms.ballots import Ballots
from quietcorpus.mechanisms.clipped_sum import STEPS
from quietcorpus.mechanisms.guarantees import UserPrivacy, round_up
from quietcorpus.mechanisms.pure_votes import PureUserVotes, PureVotes
from quietcorpus.mechanisms.user_votes import UserVotes
from quietcorpus.mechanisms.votes import Votes
from quietcorpus.pipelines.audit.histogram import exact_law
from quietcorpus.pipelines.audit.inputs import fresh_stream, stage
from quietcorpus.pipelines.audit.users import of_accounting, of_group, once
from quietcorpus.pipelines.kinds.public_texts_users import UserTextsKind
from quietcorpus.pipelines.kinds.public_texts_votes import PublicTextsKind

_DELTA = Fraction(1, 100)
"""The delta of audits by draws: at the release's own, events that tell apart are not seen."""
_NUMBERS_AT_ONCE = 1 << 20
_STRATA = 2
_MANY = 100


def audits(kind: PublicTextsKind) -> list[Exact | Sampled]:
    """Return the audits of the votes and of their noise."""
    if isinstance(kind, UserTextsKind):
        own = kind.voting.own
        if isinstance(own, PureUserVotes):
            return of_pure_user_votes(own, kind.cost)
        return of_user_votes(own, kind.cost)
    votes = kind.voting.votes
    if isinstance(votes, PureVotes):
        return of_pure_votes(votes)
    assert isinstance(votes, Votes)
    return of_votes(votes)


def of_votes(votes: Votes) -> list[Exact | Sampled]:
    """Return audits of a document's votes, of the accounting, and of noisy sums."""
    actual = votes.noise.deviation / STEPS
    return [
        _of_length(votes),
        Exact(
            "accounting",
            round_up(votes.epsilon),
            "A lower bound of what one Gaussian of noise multiplier "
            f"{float(actual):.4g} costs was computed by the privacy loss distribution.",
            partial(epsilon_recomputed, 1.0, float(actual), 1, float(votes.delta)),
            round_up(votes.delta),
        ),
        _sampled("a document", "its own texts", votes, _one(votes), votes.epsilon),
    ]


def of_pure_votes(votes: PureVotes) -> list[Exact | Sampled]:
    """Return audits of a document's votes, of the noise's law, and of noisy sums."""
    return [
        _of_length(votes),
        exact_law("votes: the noise's law", votes.epsilon, votes.norm, votes.noise(1)),
        _sampled_pure("a document", votes, _one(votes), votes.epsilon),
    ]


def of_pure_user_votes(own: PureUserVotes, promised: UserPrivacy) -> list[Exact | Sampled]:
    """Return audits of users' votes in each group, of the noise's law, and of noisy sums.

    `promised` is what the release states.
    """
    noise = own.documents.noise(1)
    return [
        audit
        for name, number, epsilon in _groups(own, promised)
        for audit in (
            _of_longest(own, name, number),
            exact_law(
                f"votes: the noise's law{of_group(name)}", epsilon, own.norms.most[name], noise
            ),
            _sampled_pure(
                f"a user{of_group(name)}", own.documents, _many_of_one(own, number), epsilon
            ),
        )
    ]


def of_user_votes(own: UserVotes, promised: UserPrivacy) -> list[Exact | Sampled]:
    """Return audits of users' votes in each group, of the accounting, and of noisy sums.

    `promised` is what the release states.
    """
    groups = list(_groups(own, promised))
    return [
        *(_of_longest(own, name, number) for name, number, _ in groups),
        *of_accounting(promised, once(own.norms)),
        *(
            _sampled(
                f"a user{of_group(name)}",
                f"texts that {_MANY} documents of the user's vote for",
                own.documents,
                _many_of_one(own, number),
                epsilon,
            )
            for name, number, epsilon in groups
        ),
    ]


def _groups(
    own: UserVotes | PureUserVotes, promised: UserPrivacy
) -> Iterator[tuple[str, int, Fraction]]:
    """Yield name, number and epsilon of each group whose users contribute."""
    stated = dict(promised.groups) or {"": promised.epsilon}
    for number, name in enumerate(own.norms.most):
        if stated[name]:
            yield name, number, stated[name]


def _of_length(votes: Ballots) -> Exact:
    """Return the audit of a document's votes."""
    return Exact(
        "a document's votes",
        1.0,
        "The figure is the length of a document's votes in the sums, in units of the norm that "
        "the noise is made for: the largest change by any of the strata's documents.",
        partial(largest_change, votes),
    )


def _of_longest(own: UserVotes | PureUserVotes, name: str, number: int) -> Exact:
    """Return the audit of the votes of a group's users."""
    return Exact(
        f"a user's votes{of_group(name)}",
        1.0,
        "The figure is the length of a user's votes in the sums, in units of the norm of "
        "the group: the largest of users of few and of many documents, on the same texts "
        "and on different ones, of one label and of two.",
        partial(longest_votes, own, number, own.norms.most[name]),
    )


def _one(votes: Ballots) -> npt.NDArray[np.int64]:
    """Return the votes of a document, int64 (1, nearest)."""
    return votes.sums(_items(votes, 0), np.zeros(1, np.int64), (1, votes.nearest))


def _many_of_one(own: UserVotes | PureUserVotes, number: int) -> npt.NDArray[np.int64]:
    """Return the votes of a user of many documents on the same texts, int64 (1, nearest)."""
    return user_votes(own, number, np.zeros(_MANY, np.int64))[None]


def _sampled(
    unit: str, whose: str, votes: Votes, one: npt.NDArray[np.int64], epsilon: Fraction
) -> Sampled:
    """Return the audit of noisy sums with and without a unit, whose votes are `one`, (1, m)."""
    try:
        needed = noise_multiplier_for(epsilon, votes.delta, Fraction(1), 1)
    except ValueError:  # a group's small epsilon, which costs less than this
        needed = LARGEST_NOISE
    return Sampled(
        f"votes, with and without {unit}",
        round_up(epsilon_of(Fraction(1), needed, 1, _DELTA)),
        f"Sums were released with and without it, and those of {whose} added up; "
        f"this is what one such release costs at a delta of {float(_DELTA):g}.",
        partial(epsilon_at_least, partial(votes_released, votes, one), 0, 1, delta=float(_DELTA)),
        round_up(_DELTA),
    )


def _sampled_pure(
    unit: str, votes: PureVotes, one: npt.NDArray[np.int64], epsilon: Fraction
) -> Sampled:
    """Return the audit of noisy sums with and without a unit, whose votes are `one`, (1, m)."""
    return Sampled(
        f"votes, with and without {unit}",
        round_up(epsilon),
        "Sums were released with and without it, and compared by the likelihoods of both.",
        partial(epsilon_at_least, partial(likelihoods_released, votes, one), 0, 1),
    )


def _items(votes: Ballots, document: int) -> npt.NDArray[np.int64]:
    """Return the texts of a document; documents of other numbers vote for other texts."""
    return document * votes.nearest + np.arange(votes.nearest, dtype=np.int64)[None]


def user_votes(
    own: UserVotes | PureUserVotes,
    group: int,
    documents: npt.NDArray[np.int64],
    *,
    strata: int = 1,
) -> npt.NDArray[np.int64]:
    """Clip the votes of a user with these documents, by turns in so many strata: int64 (n,)."""
    shape = strata, (int(documents.max()) + 1) * own.documents.nearest
    items = np.concatenate([_items(own.documents, number) for number in documents.tolist()])
    labels = np.arange(len(documents), dtype=np.int64) % strata
    sums = own.documents.sums(items, labels, shape).ravel()
    places = np.flatnonzero(sums)
    found = np.zeros_like(sums)
    if isinstance(own, PureUserVotes):
        found[places] = own.clipped(sums[places], group, *fresh_stream([b"user"]))
    else:
        middle = np.full(len(places), 1 << 15, dtype=np.uint16)
        found[places] = own.clipped(sums[places], group, middle)
    return found


def longest_votes(own: UserVotes | PureUserVotes, group: int, norm: int) -> float:
    """Compute the largest length of some users' votes, over their group's norm."""
    users = [
        (documents, strata)
        for count in (1, 2, _MANY)
        for documents in (np.zeros(count, np.int64), np.arange(count, dtype=np.int64))
        for strata in (1, _STRATA)
    ]
    return max(
        _length(own.documents, user_votes(own, group, documents, strata=strata)) / norm
        for documents, strata in users
    )


def _length(votes: Ballots, change: npt.NDArray[np.int64]) -> float:
    """Return the length of a change of the sums, in L1 for geometric noise, and else in L2."""
    if isinstance(votes, PureVotes):
        return float(sum(abs(own) for own in change.ravel().tolist()))
    return math.sqrt(sum(own**2 for own in change.ravel().tolist()))


def largest_change(votes: Ballots) -> float:
    """Compute the largest change of the sums by one document, over the norm."""
    found = 0.0
    for stratum in range(_STRATA):
        sums = votes.sums(_items(votes, 0), np.array([stratum]), (_STRATA, votes.nearest + 1))
        found = max(found, _length(votes, sums))
    return found / votes.norm


def votes_released(
    votes: Votes, one: npt.NDArray[np.int64], units: int, count: int
) -> npt.NDArray[np.int64]:
    """Release `count` sums over 0 or 1 units with votes (1, m), and add each up: (count, 1)."""
    parts = list(_parts(votes, one, units, count))
    found: npt.NDArray[np.int64] = np.concatenate(parts).sum(axis=1, keepdims=True)
    return found


def likelihoods_released(
    votes: PureVotes, one: npt.NDArray[np.int64], units: int, count: int
) -> npt.NDArray[np.int64]:
    """Release sums as `votes_released` does; return their log-likelihood ratios: (count, 1).

    They are in units of the noise's rate: sums of |z| - |z - v| over a unit's votes v, which no
    other number made of the sums tells more than.
    """
    parts = [
        (abs(noisy) - abs(noisy - one)).sum(axis=1, keepdims=True)
        for noisy in _parts(votes, one, units, count)
    ]
    found: npt.NDArray[np.int64] = np.concatenate(parts)
    return found


def _parts(
    votes: Ballots, one: npt.NDArray[np.int64], units: int, count: int
) -> Iterator[npt.NDArray[np.int64]]:
    most = max(1, _NUMBERS_AT_ONCE // one.shape[1])
    for start in range(0, count, most):
        size = min(most, count - start)
        yield votes.release(np.repeat(one * units, size, axis=0), stage())
