"""Faults in the votes for public texts, and the audits that tell."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from correct_audits import (
    DELTA,
    PURE_NORMS,
    Patch,
    pure_voters,
    pure_voting_users,
    voters,
    voting_users,
)
from faulty_users import apart_by_file, apart_by_group, as_if_named, named_as_spelt
from planting import Faults, of

import quietcorpus.mechanisms.votes.pure_votes
import quietcorpus.mechanisms.votes.user_votes
import quietcorpus.transforms.users.users
import quietcorpus.transforms.users.votes
from quietcorpus.mechanisms.users.clipped_sum import STEPS, ClippedSum
from quietcorpus.mechanisms.votes.pure_votes import PureVotes
from quietcorpus.mechanisms.votes.votes import Votes
from quietcorpus.pipelines.kinds.public_texts.voting import PublicTextsKind, UserTextsKind
from quietcorpus.transforms.users.shards import pack, summed, unpack
from quietcorpus.transforms.users.users import NO_BUDGET
from quietcorpus.transforms.users.votes import Share, UserVoting
from quietcorpus.transforms.votes import Strata, Voting


def unclipped_votes(patch: Patch) -> None:
    """The whole norm for each of a document's texts."""
    patch.setattr(Votes, "weight", STEPS)


def half_vote_noise(patch: Patch) -> None:
    """Noise for half of the norm."""
    full = Votes(5, Fraction(2), DELTA).noise
    patch.setattr(Votes, "noise", ClippedSum(full.noise_multiplier / 2))


def noise_of_a_vote(patch: Patch) -> None:
    """Noise for one text's vote, as if a document had no others."""
    full = Votes(5, Fraction(2), DELTA)
    share = Fraction(full.weight, STEPS)
    patch.setattr(Votes, "noise", ClippedSum(full.noise.noise_multiplier * share))


def unclipped_users(patch: Patch) -> None:
    """The votes of all documents of a user, as they are."""

    def asked(values: np.ndarray, dither: np.ndarray, _: int) -> np.ndarray:
        return np.floor(values * STEPS + (dither + 0.5) / 2**16).astype(np.int64)

    patch.setattr(quietcorpus.mechanisms.votes.user_votes, "clipped", asked)


def one_norm(patch: Patch) -> None:
    """The largest norm, whatever a user's budget."""
    real = quietcorpus.mechanisms.votes.user_votes.clipped
    patch.setattr(
        quietcorpus.mechanisms.votes.user_votes,
        "clipped",
        lambda votes, dither, _: real(votes, dither),
    )


def unclipped_pure_votes(patch: Patch) -> None:
    """The whole norm for each of a document's texts, under noise for one of them."""
    norm = PureVotes(5, Fraction(2)).norm
    patch.setattr(PureVotes, "norm", norm)
    patch.setattr(PureVotes, "weight", norm)


def half_pure_noise(patch: Patch) -> None:
    """Noise for half of the norm."""
    patch.setattr(PureVotes, "rate", 2 * PureVotes(5, Fraction(2)).rate)


def unclipped_pure_users(patch: Patch) -> None:
    """The votes of all documents of a user, as they are."""
    patch.setattr(quietcorpus.mechanisms.votes.pure_votes, "copies", lambda votes, *_: votes)


def one_pure_norm(patch: Patch) -> None:
    """The largest norm, whatever a user's budget."""
    real, most = quietcorpus.mechanisms.votes.pure_votes.copies, max(PURE_NORMS.most.values())
    patch.setattr(
        quietcorpus.mechanisms.votes.pure_votes,
        "copies",
        lambda votes, _, start: real(votes, most, start),
    )


def clipped_apart(places_of: Any) -> Callable[[Patch], None]:
    """The votes of a user, clipped once for each of the parts that places belong to."""

    def plant(patch: Patch) -> None:
        real = UserVoting.clipped

        def apart(self: UserVoting, user: bytes, share: Share, stream: Any) -> Any:
            group, packed = share
            places, votes = unpack(packed)
            parts = places_of(self, places)
            done = [
                real(self, user, (group, pack((places[parts == own], votes[parts == own]))), stream)
                for own in np.unique(parts)
            ]
            empty = [(places[:0], votes[:0])]
            return tuple(np.concatenate(own) for own in zip(*empty, *done, strict=True))

        patch.setattr(UserVoting, "clipped", apart)

    return plant


def by_label(self: UserVoting, places: Any) -> Any:
    return places // self.texts


def by_text(_: UserVoting, places: Any) -> Any:
    return places


def clipped_in_reading(patch: Patch) -> None:
    """Users' votes clipped where they are read, in each file or bundle, and never together."""
    shares, clipped = UserVoting.shares, UserVoting.clipped

    def early(self: UserVoting, parts: Any, pool: Any, encoder: Any, key: Any) -> Any:
        stream = self.clipping(key)
        for user, share in shares(self, parts, pool, encoder, key):
            if share[0] == NO_BUDGET:
                yield user, share
            else:
                yield user, (share[0], pack(clipped(self, user, share, stream)))

    patch.setattr(UserVoting, "shares", early)
    patch.setattr(UserVoting, "clipped", lambda self, user, share, stream: unpack(share[1]))


def last_group(patch: Patch) -> None:
    """The largest budget of a user of several groups."""

    def joined(shares: Any) -> Share:
        listed = list(shares)
        return max(group for group, _ in listed), pack(summed(unpack(own) for _, own in listed))

    patch.setattr(quietcorpus.transforms.users.votes, "joined", joined)


def any_group(patch: Patch) -> None:
    """A document without a budget is left out, and its user is not."""
    real = UserVoting.votes_of_users

    def some(self: UserVoting, *others: Any) -> Any:
        return (own for own in real(self, *others) if own[1] != NO_BUDGET)

    patch.setattr(UserVoting, "votes_of_users", some)


def other_labels_count(patch: Patch) -> None:
    """Documents of labels that are not listed, or of none, are of the first one."""
    real = Strata.numbers
    patch.setattr(Strata, "numbers", lambda self, own: np.maximum(real(self, own), 0))


def documents_vote(patch: Patch) -> None:
    """The transform for documents in place of the one for users."""
    patch.setattr(UserTextsKind, "release", PublicTextsKind.release)


def noisy_twice(patch: Patch) -> None:
    """Each user's votes are in the sums twice."""
    real = quietcorpus.transforms.users.votes.each_once
    patch.setattr(
        quietcorpus.transforms.users.votes,
        "each_once",
        lambda own: (u for u in real(own) for _ in "12"),
    )


def clipped_after(patch: Patch) -> None:
    """The bound is on the sums over a shard's users, and not on each."""
    process = quietcorpus.transforms.users.votes._ClipVotes.process
    patch.setattr(UserVoting, "clipped", lambda self, user, share, stream: unpack(share[1]))

    def bounded(self: Any, shard: Any) -> Any:
        for sums, parts in process(self, shard):
            yield np.clip(sums, -(10**6), 10**6), parts

    patch.setattr(quietcorpus.transforms.users.votes._ClipVotes, "process", bounded)


def shared_bound(patch: Patch) -> None:
    """A user's norm depends on the number of users in the shard."""
    real = quietcorpus.transforms.users.votes._ClipVotes.process

    def scaled(self: Any, shard: Any) -> Any:
        listed = list(shard[1])
        for sums, parts in real(self, (shard[0], listed)):
            yield sums // max(1, len(listed) - 1), parts

    patch.setattr(quietcorpus.transforms.users.votes._ClipVotes, "process", scaled)


def documents_twice(patch: Patch) -> None:
    """A document's votes are in the sums twice."""
    real = Voting.sums
    patch.setattr(Voting, "sums", lambda self, *others: 2 * real(self, *others))


def every_label(patch: Patch) -> None:
    """A document is counted in all strata."""
    real = Voting.sums

    def spread(self: Voting, *others: Any) -> Any:
        found = real(self, *others)
        return np.broadcast_to(found.sum(axis=0), found.shape).astype(np.int64)

    patch.setattr(Voting, "sums", spread)


def same_noise(patch: Patch) -> None:
    """The noise on a row is the same for every row."""
    real = Votes.noisy
    patch.setattr(
        Votes,
        "noisy",
        lambda self, sums, stream, rows: (
            sums + real(self, np.zeros_like(sums[:1]), stream, rows[:1])
        ),
    )


def no_noise_on_release(patch: Patch) -> None:
    """A release that skips its noise."""
    patch.setattr(Voting, "release", lambda self, sums, key: sums)


def other_labels_name_no_group(patch: Patch) -> None:
    """A document of another label is passed over, with the group that it names."""
    real = UserVoting.votes_of_users

    def passed_over(self: UserVoting, documents: Any, *others: Any) -> Any:
        digests = self.users.digests(documents, others[-1])
        strata = self.strata_of(documents)
        listed = [number for user, number in zip(digests, strata, strict=True) if user is not None]
        found = real(self, documents, *others)
        return (vote for vote, number in zip(found, listed, strict=True) if number >= 0)

    patch.setattr(UserVoting, "votes_of_users", passed_over)


FAULTS: Faults = {
    "votes that are not clipped, by their length": (
        of(voters, unclipped_votes),
        "a document's votes",
    ),
    "votes that are not clipped, by draws": (
        of(voters, unclipped_votes),
        "votes, with and without a document",
    ),
    "half of the noise on votes, by accounting": (of(voters, half_vote_noise), "accounting"),
    "half of the noise on votes, by draws": (
        of(voters, half_vote_noise),
        "votes, with and without a document",
    ),
    "noise for a single text's vote": (
        of(voters, noise_of_a_vote),
        "votes, with and without a document",
    ),
    "users whose votes are not clipped, by their length": (
        of(voting_users, unclipped_users),
        "a user's votes: group gold",
    ),
    "users whose votes are not clipped, by draws": (
        of(voting_users, unclipped_users),
        "votes, with and without a user: group gold",
    ),
    "the largest norm for every budget, by length": (
        of(voting_users, one_norm),
        "a user's votes: group silver",
    ),
    "the largest norm for every budget, by draws": (
        of(voting_users, one_norm),
        "votes, with and without a user: group silver",
    ),
    "half of the noise on users' votes, by accounting": (
        of(voting_users, half_vote_noise),
        "accounting: group silver",
    ),
    "half of the noise on users' votes, by draws": (
        of(voting_users, half_vote_noise),
        "votes, with and without a user: group gold",
    ),
    "geometric votes that are not clipped, by their length": (
        of(pure_voters, unclipped_pure_votes),
        "a document's votes",
    ),
    "geometric votes that are not clipped, by draws": (
        of(pure_voters, unclipped_pure_votes),
        "votes, with and without a document",
    ),
    "half of the geometric noise on votes, by its law": (
        of(pure_voters, half_pure_noise),
        "votes: the noise's law",
    ),
    "half of the geometric noise on votes, by draws": (
        of(pure_voters, half_pure_noise),
        "votes, with and without a document",
    ),
    "users whose geometric votes are not clipped, by their length": (
        of(pure_voting_users, unclipped_pure_users),
        "a user's votes: group gold",
    ),
    "users whose geometric votes are not clipped, by draws": (
        of(pure_voting_users, unclipped_pure_users),
        "votes, with and without a user: group gold",
    ),
    "the largest norm for every budget under geometric noise, by length": (
        of(pure_voting_users, one_pure_norm),
        "a user's votes: group silver",
    ),
    "the largest norm for every budget under geometric noise, by draws": (
        of(pure_voting_users, one_pure_norm),
        "votes, with and without a user: group silver",
    ),
    "half of the geometric noise on users' votes, by its law": (
        of(pure_voting_users, half_pure_noise),
        "votes: the noise's law: group silver",
    ),
    "half of the geometric noise on users' votes, by draws": (
        of(pure_voting_users, half_pure_noise),
        "votes, with and without a user: group gold",
    ),
    "users clipped once for each label": (
        of(voting_users, clipped_apart(by_label)),
        "a user's votes: group gold",
    ),
    "users clipped once for each label, by draws": (
        of(voting_users, clipped_apart(by_label)),
        "votes, with and without a user: group gold",
    ),
    "users clipped once for each label, under geometric noise": (
        of(pure_voting_users, clipped_apart(by_label)),
        "a user's votes: group silver",
    ),
    "users clipped once for each text": (
        of(voting_users, clipped_apart(by_text)),
        "a user's votes: group silver",
    ),
    "users clipped once for each file": (
        of(voting_users, clipped_in_reading),
        "a user's votes: group gold",
    ),
    "voting users of two files for one": (
        of(voting_users, apart_by_file),
        "a user's votes: group silver",
    ),
    "users counted in each of their groups": (
        of(voting_users, apart_by_group),
        "a user's votes: group tin",
    ),
    "one user of a number for each of its spellings": (
        of(voting_users, named_as_spelt),
        "a user's votes: group gold",
    ),
    "the largest budget of a user of several": (
        of(voting_users, last_group),
        "a user's votes: group tin",
    ),
    "a user with a document without a budget": (
        of(voting_users, any_group),
        "votes of documents without a part",
    ),
    "documents without a user": (
        of(voting_users, as_if_named),
        "votes of documents without a part",
    ),
    "documents of other labels": (
        of(voting_users, other_labels_count),
        "votes of documents without a part",
    ),
    "documents of other labels that name no group": (
        of(voting_users, other_labels_name_no_group),
        "votes of documents without a part",
    ),
    "documents of other labels that name no lesser group": (
        of(pure_voting_users, other_labels_name_no_group),
        "a user's votes: group silver",
    ),
    "documents in place of users": (
        of(voting_users, documents_vote),
        "a user's votes: group gold",
    ),
    "users whose votes are added twice": (
        of(voting_users, noisy_twice),
        "a user's votes: group gold",
    ),
    "users bounded after their sum": (
        of(voting_users, clipped_after),
        "a user's votes: group gold",
    ),
    "a bound that depends on other users": (
        of(voting_users, shared_bound),
        "votes of documents without a part",
    ),
    "documents whose votes are added twice": (of(voters, documents_twice), "a document's votes"),
    "documents counted in every stratum": (of(voters, every_label), "a document's votes"),
    "one noise for all rows of sums": (
        of(voters, same_noise),
        "votes, with and without a document",
    ),
    "votes that skip their noise": (
        of(voters, no_noise_on_release),
        "votes, with and without a document",
    ),
}
