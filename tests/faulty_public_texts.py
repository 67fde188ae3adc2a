"""Faults in the votes for public texts, and the audits that tell."""

from __future__ import annotations

from fractions import Fraction

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
from planting import Faults, of

import quietcorpus.mechanisms.pure_votes
import quietcorpus.mechanisms.user_votes
from quietcorpus.mechanisms.clipped_sum import STEPS, ClippedSum
from quietcorpus.mechanisms.pure_votes import PureVotes
from quietcorpus.mechanisms.votes import Votes


def unclipped_votes(patch: Patch) -> None:
    """The whole norm for each of a document's texts."""
    patch.setattr(Votes, "weights", (STEPS,) * 5)


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

    patch.setattr(quietcorpus.mechanisms.user_votes, "clipped", asked)


def one_norm(patch: Patch) -> None:
    """The largest norm, whatever a user's budget."""
    real = quietcorpus.mechanisms.user_votes.clipped
    patch.setattr(
        quietcorpus.mechanisms.user_votes, "clipped", lambda votes, dither, _: real(votes, dither)
    )


def unclipped_pure_votes(patch: Patch) -> None:
    """The whole norm for each of a document's texts, under noise for one of them."""
    norm = PureVotes(5, Fraction(2)).norm
    patch.setattr(PureVotes, "norm", norm)
    patch.setattr(PureVotes, "weights", (norm,) * 5)


def half_pure_noise(patch: Patch) -> None:
    """Noise for half of the norm."""
    patch.setattr(PureVotes, "rate", 2 * PureVotes(5, Fraction(2)).rate)


def unclipped_pure_users(patch: Patch) -> None:
    """The votes of all documents of a user, as they are."""
    patch.setattr(quietcorpus.mechanisms.pure_votes, "copies", lambda votes, *_: votes)


def one_pure_norm(patch: Patch) -> None:
    """The largest norm, whatever a user's budget."""
    real, most = quietcorpus.mechanisms.pure_votes.copies, max(PURE_NORMS.most.values())
    patch.setattr(
        quietcorpus.mechanisms.pure_votes,
        "copies",
        lambda votes, _, start: real(votes, most, start),
    )


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
}
