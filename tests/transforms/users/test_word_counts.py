"""The counts of words over users, as a pipeline releases them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import apache_beam as beam
import numpy as np
import pytest
from running import run

from quietcorpus.indexes.tokens.vocabulary import Vocabulary
from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.mechanisms.users.clipped_sum import STEPS, ClippedSum
from quietcorpus.mechanisms.users.word_counts import WordCounts
from quietcorpus.transforms.sums import OfParts
from quietcorpus.transforms.users import clipped_sums
from quietcorpus.transforms.users.users import BoundedUsers, Share
from quietcorpus.transforms.users.word_counts import NoisyWordCounts, UserCounts

SIZE = 60
WORDS = Vocabulary([f"w{a}{b}" for a in "abcdefgh" for b in "abcdefgh"][:SIZE])
COUNTING = UserCounts(
    most=(100, STEPS),
    mechanism=ClippedSum(Fraction(1)),
    users=BoundedUsers("user", tokens=1_000),
    bound=WordCounts(9, 2),
)
Listed = list[tuple[bytes, Share]]


def key_of() -> ReleaseKey:
    return ReleaseKey.derive(os.urandom(32), "test", b"")


def users_of(count: int) -> Listed:
    """Users of two texts of up to 30 words, in the two groups."""
    generator = np.random.default_rng()
    raw = [
        [generator.integers(0, SIZE - 1, size).astype("<i4").tobytes() for size in sizes]
        for sizes in generator.integers(1, 30, (count, 2))
    ]
    return [(os.urandom(16), (n % 2, list(enumerate(own)))) for n, own in enumerate(raw)]


def released(users: Sequence[Any], key: ReleaseKey, shards: int = 3, **runner: Any) -> np.ndarray:
    def build(pipeline: beam.Pipeline) -> dict[str, beam.PCollection]:
        words = beam.pvalue.AsSingleton(pipeline | "v" >> beam.Create([WORDS]))
        release = NoisyWordCounts(COUNTING, words, shards, lambda: key, OfParts(shards))
        return {"counts": pipeline | "users" >> beam.Create(users) | release}

    (found,) = run(build, **runner)["counts"]
    assert found.dtype == np.int64
    return found


def exact(users: Listed, key: ReleaseKey) -> np.ndarray:
    sums = np.zeros(SIZE, np.int64)
    for user, share in users:
        cells, own = COUNTING.clipped(user, share, SIZE, key)
        assert (own**2).sum() <= COUNTING.most[share[0]] ** 2
        sums[cells] += own
    return sums


def test_counts_are_of_the_users_that_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    # Without noise. Kills: a user's words at another word's place, a group's norm for all users,
    # sums that are not turned into counts, blocks in another order or one that is missing.
    monkeypatch.setattr(ClippedSum, "release", lambda self, sums, *_: sums)
    monkeypatch.setattr(clipped_sums, "_CELLS_A_BLOCK", 7)
    key, users = key_of(), users_of(30)
    found = released(users, key)
    np.testing.assert_array_equal(found, COUNTING.bound.counts(exact(users, key)))
    assert found.any()
    assert not released([], key).any()


@pytest.mark.parametrize("users", [0, 20])
def test_every_word_has_noise_of_its_own(users: int) -> None:
    # Also the last word, which no user has. Kills: noise on touched words alone, one number for
    # all. A rounded normal of a deviation of 6 is 0 for at most 20 of 60 words but for 1e-6.
    key, listed = key_of(), users_of(users)
    noise = released(listed, key) - COUNTING.bound.counts(exact(listed, key))
    assert (noise == 0).sum() <= 20
    assert len(set(noise.tolist())) > 8


def test_the_engine_and_its_bundles_change_nothing() -> None:
    # Kills: noise by shard, an address of the parts rather than of their sum.
    key, users = key_of(), users_of(12)
    first = released(users, key)
    for shards, order, runner in ((1, -1, {}), (7, 1, {"bundle_repeat": 1})):
        np.testing.assert_array_equal(released(users[::order], key, shards, **runner), first)
    assert (released(users, key_of()) != first).any()


def test_other_users_make_all_noise_anew() -> None:
    # Kills: noise that runs on neighbouring corpora share, whose difference is a user's counts.
    key, users = key_of(), users_of(6)
    noise = [
        released(some, key) - COUNTING.bound.counts(exact(some, key)) for some in (users, users[1:])
    ]
    assert (noise[0] != noise[1]).mean() > 0.5


def test_another_bound_has_other_noise() -> None:
    # Kills: items or weight left out of the stage, so that two releases share their noise.
    key, none = key_of(), (np.empty(0, np.int64),) * 2
    bounds = (WordCounts(9, 2), WordCounts(8, 2), WordCounts(9, 1))
    drawn = [replace(COUNTING, bound=own).noised(none, WORDS, key) for own in bounds]
    assert (drawn[0] != drawn[1]).mean() > 0.9
    assert (drawn[0] != drawn[2]).mean() > 0.9
