"""Co-occurrence counts: what each user adds, and noise on every pair there is, also where none is.

The statistical checks reject a correct implementation with probability ALPHA each at most. They
take 3 million draws of a deviation of 512: one that is wrong by 2 % adds 2,500 to the chi-square
statistic, which rejects at 101.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from running import run
from scipy import stats

from quietcorpus.indexes.tokens.vocabulary import Vocabulary
from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.mechanisms.users.clipped_sum import STEPS, ClippedSum
from quietcorpus.mechanisms.users.cooccurrence import cells_of, contribution, packed
from quietcorpus.transforms.errors import InputError, NoisyOutcome, StageError
from quietcorpus.transforms.reading.parquet_files import table_in
from quietcorpus.transforms.shards import Written, staged_content
from quietcorpus.transforms.sums import OfParts
from quietcorpus.transforms.users import clipped_sums as module
from quietcorpus.transforms.users.cooccurrence import (
    FOLDER,
    MOST_WORDS,
    Cooccurrences,
    ReleaseCooccurrences,
    refuse_large,
)
from quietcorpus.transforms.users.shards import pack, unpack
from quietcorpus.transforms.users.users import BoundedUsers, Share, words_of

ALPHA = 1e-6
LETTERS = "abcdefghijklmnopqrstuvwxyz"
SIZE = 2500  # 3,126,250 pairs: one block of 2^21, and about half of another
COUNTING = Cooccurrences(
    window=5,
    most=(100, STEPS),
    mechanism=ClippedSum(Fraction(1)),
    users=BoundedUsers("user", tokens=1_000),
)
Listed = list[tuple[bytes, Share]]


def key_of() -> ReleaseKey:
    return ReleaseKey.derive(os.urandom(32), "test", b"")


def vocabulary_of(size: int) -> Vocabulary:
    return Vocabulary([f"w{a}{b}{c}" for a in LETTERS for b in LETTERS for c in LETTERS][:size])


def share_of(number: int, *texts: Sequence[int]) -> Share:
    return number, [(i, np.array(text, "<i4").tobytes()) for i, text in enumerate(texts)]


def users_of(count: int, size: int) -> Listed:
    """Users of texts of up to 30 words out of so many, in the two groups."""
    generator = np.random.default_rng()
    return [
        (
            os.urandom(16),
            share_of(
                n % 2, *(generator.integers(0, size, m) for m in generator.integers(1, 30, 3))
            ),
        )
        for n in range(count)
    ]


def released(
    users: Listed,
    key: ReleaseKey,
    folder: Path,
    size: int = SIZE,
    shards: int = 3,
    counting: Cooccurrences = COUNTING,
    **runner: Any,
) -> list[Written]:
    """The files, in the order of their names."""
    folder.mkdir(exist_ok=True)

    def build(pipeline: beam.Pipeline) -> dict[str, beam.PCollection]:
        words = beam.pvalue.AsSingleton(pipeline | "v" >> beam.Create([vocabulary_of(size)]))
        release = ReleaseCooccurrences(counting, words, shards, lambda: key, str(folder))
        return {"files": pipeline | "users" >> beam.Create(users) | release}

    return sorted(run(build, **runner)["files"], key=lambda file: file.path)


def counts_in(files: Sequence[Written], key: ReleaseKey) -> np.ndarray:
    tables = [table_in(b"".join(staged_content(file, key))) for file in files]
    found: np.ndarray = np.concatenate([table["count"].to_numpy() for table in tables])
    return found


def exact_sums(users: Listed, key: ReleaseKey, size: int, counting: Cooccurrences) -> np.ndarray:
    sums = np.zeros(cells_of(size), dtype=np.int64)
    for user, share in users:
        cells, counts = counting.clipped(user, share, size, key)
        sums[cells] += counts
    return sums


# What a user adds.

shares = st.builds(
    share_of,
    st.integers(0, 1),
    st.lists(st.integers(0, 11), max_size=30),
    st.lists(st.integers(0, 11), max_size=30),
)


@settings(deadline=None)  # kernels are compiled the first time they run
@given(share=shares, window=st.integers(1, 6), digest=st.binary(min_size=16, max_size=16))
def test_a_user_adds_no_more_than_the_groups_norm(share: Share, window: int, digest: bytes) -> None:
    # Kills: the largest group's norm for all, a norm that rounding passes, counts that are not of
    # the user's pairs.
    counting = replace(COUNTING, window=window)
    most, key = counting.most[share[0]], key_of()
    cells, counts = counting.clipped(digest, share, 12, key)
    assert cells.dtype == counts.dtype == np.int64
    assert (np.diff(cells) > 0).all()
    assert (counts > 0).all()
    assert sum(count * count for count in counts.tolist()) <= most**2
    own, values = contribution(words_of(share), window, 12)
    assert set(cells.tolist()) <= set(own.tolist())
    dense = np.zeros(len(own))
    dense[np.searchsorted(own, cells)] = counts
    # An entry is rounded by less than one; and, of at most 78, shrunk by 10 % at the very most.
    assert (np.abs(dense - most * values) <= 1 + 0.1 * most * values).all()
    again = counting.clipped(digest, share, 12, key)
    np.testing.assert_array_equal(again[1], counts)


def test_a_group_without_a_norm_adds_nothing() -> None:
    counting = replace(COUNTING, most=(0, STEPS))
    cells, counts = counting.clipped(bytes(16), share_of(0, range(9)), 12, key_of())
    assert len(cells) == len(counts) == 0


def test_rounding_is_each_users_own() -> None:
    # Kills: one dither for all, with which rounding errors add up; one of no key.
    share = share_of(1, range(40))
    keys = key_of(), key_of()
    counts = [
        exact_sums([(digest, share)], key, 40, COUNTING)
        for digest, key in [(bytes(16), keys[0]), (bytes(15) + b"1", keys[0]), (bytes(16), keys[1])]
    ]
    for i in range(3):
        # 190 entries of which each is rounded either way with chances above 1 / 20.
        assert (counts[i] != counts[i - 1]).any()


# What is released.


@pytest.mark.parametrize("users", [0, 40])
def test_every_pair_there_is_has_noise(users: int, tmp_path: Path) -> None:
    # Also where nobody has written anything. Kills: blocks that users have touched alone (which
    # pairs they have is what is private), noise on touched pairs alone, a block that ends late.
    key = key_of()
    # Their words are the first, so that the second block is empty, and half of the first.
    listed = users_of(users, 200)
    files = released(listed, key, tmp_path / "files")
    assert [file.path for file in files] == [f"{FOLDER}/block-{n:05d}.parquet" for n in range(2)]
    assert [file.rows for file in files] == [1 << 21, cells_of(SIZE) - (1 << 21)]
    counts = counts_in(files, key)
    assert counts.dtype == np.int64
    noise = counts - exact_sums(listed, key, SIZE, COUNTING)
    for part in (noise[: 1 << 21], noise[1 << 21 :]):
        check_law(part, STEPS)
    touched = np.zeros(cells_of(SIZE), dtype=np.bool_)
    touched[packed(*np.triu_indices(200), SIZE)] = True
    for part in (noise[touched], noise[~touched]):
        check_law(part, STEPS)
    # Kills: a draw that stands twice, in both blocks or beside itself.
    rest = cells_of(SIZE) - (1 << 21)
    for one, other in [(noise[:rest], noise[-rest:]), (noise[::2], noise[1::2])]:
        assert agreement(one, other) >= ALPHA


def law(noise: np.ndarray, deviation: float) -> float:
    """The p-value of rounded Gaussian noise, by 40 cells."""
    edges = np.floor(stats.norm.ppf(np.arange(1, 40) / 40) * deviation)
    observed = np.bincount(np.searchsorted(edges, noise), minlength=40)
    chances = np.diff(stats.norm.cdf((edges + 0.5) / deviation), prepend=0, append=1)
    return float(stats.chisquare(observed, chances * len(noise)).pvalue)


def check_law(noise: np.ndarray, deviation: float) -> None:
    """By cells, and by the number beyond the upper 1 / 5000."""
    assert law(noise, deviation) >= ALPHA
    far = int((np.abs(noise) > 3.719 * deviation).sum())
    assert stats.binomtest(far, len(noise), 2 * stats.norm.sf(3.719)).pvalue >= ALPHA


def agreement(one: np.ndarray, other: np.ndarray) -> float:
    """The p-value of independent signs, where neither is zero."""
    drawn = (one != 0) & (other != 0)
    agreed = int(((one > 0) == (other > 0))[drawn].sum())
    return float(stats.binomtest(agreed, int(drawn.sum())).pvalue)


@pytest.mark.parametrize("factor", [0.5, 0.98, 1.02, 2.0])
def test_control_another_deviation_is_rejected(factor: float) -> None:
    drawn = np.rint(np.random.default_rng().normal(0, STEPS, 1 << 20))
    assert law(drawn, STEPS) >= ALPHA
    assert law(drawn * factor, STEPS) < ALPHA


def test_control_noise_on_some_pairs_is_rejected() -> None:
    # One in fifty left as it is; and one in fifty drawn again, beside itself.
    drawn = np.rint(np.random.default_rng().normal(0, STEPS, 1 << 20))
    assert agreement(drawn[::2], drawn[1::2]) >= ALPHA
    drawn[1::50] = drawn[::50]
    assert agreement(drawn[::2], drawn[1::2]) < ALPHA
    drawn[::50] = 0
    assert law(drawn, STEPS) < ALPHA


@pytest.mark.slow
def test_the_engine_and_its_bundles_change_nothing(tmp_path: Path) -> None:
    # However users are divided and in whatever order they come. Kills: sums in floats, noise by
    # shard, an address made of the parts rather than of their sum.
    key, users = key_of(), users_of(60, 2400)
    layouts: list[dict[str, Any]] = [
        {"shards": 1},
        {"shards": 7},
        {"shards": 500},
        {"shards": 7, "bundle_repeat": 1},
    ]
    found = [
        [
            file.sha256
            for file in released(users[:: 1 - 2 * (n % 2)], key, tmp_path / str(n), **layout)
        ]
        for n, layout in enumerate(layouts)
    ]
    assert all(digests == found[0] for digests in found)
    other = [file.sha256 for file in released(users, key_of(), tmp_path / "other")]
    assert not set(other) & set(found[0])


def test_other_users_make_all_noise_of_their_blocks_anew(tmp_path: Path) -> None:
    # Kills: noise that two runs on neighbouring corpora share, whose difference is a user's counts.
    key, users = key_of(), users_of(4, 2500)
    noise = [
        counts_in(released(some, key, tmp_path / str(len(some))), key)
        - exact_sums(some, key, SIZE, COUNTING)
        for some in (users, users[1:])
    ]
    assert (noise[0] == noise[1]).mean() < 0.01


@pytest.mark.parametrize("size", [1, 2, 3, 64])
def test_small_vocabularies(size: int, tmp_path: Path) -> None:
    users = users_of(5, size)
    (file,) = released(users, key_of(), tmp_path / "files", size)
    assert file.rows == cells_of(size)


@pytest.mark.parametrize("held", [0, 1, 50, 1 << 22])
def test_sums_held_are_added_up_now_and_then(held: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Kills: users that are lost where sums are drawn together; sums of all users so far that are
    # sorted again for each (100 users of 300 pairs: 1.5 million cells, hours in a shard of 10,000).
    key, users = key_of(), users_of(100, 400)
    sorted_cells = 0
    summed = module.summed

    def counted(parts: Any) -> Any:
        nonlocal sorted_cells
        sorted_cells += sum(len(cells) for cells, _ in parts)
        return summed(parts)

    monkeypatch.setattr(module, "summed", counted)
    monkeypatch.setattr(module, "_CELLS_HELD", held)
    words = vocabulary_of(400)
    outputs = module._SumShard(COUNTING, lambda: key, OfParts(1)).process((0, users), words)
    ((block, (sums, shards)),) = outputs
    assert (block, shards) == (0, (0,))
    found = np.zeros(cells_of(400), dtype=np.int64)
    cells, own = unpack(sums)
    found[cells] = own
    np.testing.assert_array_equal(found, exact_sums(users, key, 400, COUNTING))
    total = sum(len(COUNTING.clipped(user, share, 400, key)[0]) for user, share in users)
    assert sorted_cells <= 5 * total


def test_what_the_engine_doubles_is_refused(tmp_path: Path) -> None:
    # A user, or a whole shard: each would count double. Kills: a sum of whatever comes.
    user = os.urandom(16), share_of(0, [1, 2, 3])
    with pytest.raises(Exception, match="the engine doubled a user"):
        released([user, user], key_of(), tmp_path)
    part = pack((np.array([3]), np.array([5])))
    of_shard = [(part, (number,)) for number in (0, 1, 1)]
    add = partial(module._added, OfParts(2))
    assert add([add(of_shard[:1]), of_shard[1]])[1] == (0, 1)
    with pytest.raises(StageError, match="doubled"):
        add([add(of_shard[:2]), of_shard[2]])


def test_what_the_engine_loses_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A shard of users. Kills: counts of whichever users came.
    count = module._SumShard.process

    def lossy(self: Any, shard: Any, vocabulary: Vocabulary) -> Any:
        return count(self, shard, vocabulary) if shard[0] != 1 else ()

    monkeypatch.setattr(module._SumShard, "process", lossy)
    with pytest.raises(Exception, match="the engine lost a part: 2 of 3 are there"):
        released(users_of(9, 50), key_of(), tmp_path, 50)


def test_a_vocabulary_of_too_many_pairs_is_refused() -> None:
    # A private one is known to be once it is selected. Kills: hours of noise that nothing holds; a
    # refusal that tells how many terms were selected, and spends no budget.
    words = itertools.islice(itertools.product("abcdefghijklm", repeat=4), MOST_WORDS + 1)
    many = Vocabulary(list(map("".join, words)))
    refuse_large(MOST_WORDS)
    with pytest.raises(InputError, match=r"mechanism\.vocabulary: 20001 words have too many pairs"):
        refuse_large(MOST_WORDS + 1)
    with pytest.raises(NoisyOutcome):
        list(module._SumShard(COUNTING, key_of, OfParts(1)).process((0, []), many))
