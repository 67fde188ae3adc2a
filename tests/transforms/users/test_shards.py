"""Users' texts as shards on storage: what is read is what was written, and nobody else can."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from running import run
from scipy import stats

from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.mechanisms.users.sampled_users import Texts
from quietcorpus.transforms.errors import StageError
from quietcorpus.transforms.shards import Written, staged_content
from quietcorpus.transforms.users.shards import (
    FOLDER,
    SCHEMA,
    WriteTrainingShards,
    read_shards,
    shard_of,
    shards_for,
)
from quietcorpus.transforms.users.users import Share

ALPHA = 1e-6
Listed = list[tuple[bytes, Share]]


def key_of() -> ReleaseKey:
    return ReleaseKey.derive(os.urandom(32), "test", b"")


def users_of(count: int) -> Listed:
    """Users of 1 to 4 texts of 1 to 6 words, in groups 0 to 2; one of them of 100,000 words."""
    generator = np.random.default_rng()
    users: Listed = []
    for number in range(count):
        size = 100_000 if number == 0 else 0
        texts = [
            (int(generator.integers(1 << 63)), generator.integers(0, 2**31, n, "<i4").tobytes())
            for n in [
                *generator.integers(1, 7, generator.integers(1, 5)),
                *([size] if size else []),
            ]
        ]
        users.append((os.urandom(16), (number % 3, texts)))
    return users


def written(
    users: Listed, shards: int, key: ReleaseKey, folder: Path, **runner: Any
) -> list[Written]:
    def build(pipeline: beam.Pipeline) -> dict[str, beam.PCollection]:
        write = WriteTrainingShards(shards, lambda: key, str(folder))
        return {"files": pipeline | beam.Create(users) | write}

    return sorted(run(build, **runner)["files"], key=lambda file: file.path)


def contents(files: Sequence[Written], key: ReleaseKey) -> list[bytes]:
    return [b"".join(staged_content(file, key)) for file in files]


def listed(texts: Texts) -> list[tuple[bytes, int, list[bytes]]]:
    return [
        (
            texts.addresses[i].tobytes(),
            int(texts.groups[i]),
            [words.astype("<i4").tobytes() for words in texts.of(i)],
        )
        for i in range(len(texts))
    ]


@pytest.mark.parametrize(("users", "shards"), [(1, 1), (700, 1), (700, 3), (5, 40)])
def test_what_was_written_is_read(users: int, shards: int, tmp_path: Path) -> None:
    # Kills: a user cut in two where shards meet, texts run together, groups of others, users in an
    # order that depends on the engine's, numbers above 2^31 - 1 or priorities among them.
    given_users, key = users_of(users), key_of()
    files = written(given_users, shards, key, tmp_path)
    place = {user[0]: shard_of(user[0], shards) for user in given_users}
    ordered = sorted(given_users, key=lambda user: (place[user[0]], user[0]))
    assert [file.path for file in files] == [
        f"{FOLDER}/part-{shard:05d}-of-{shards:05d}.parquet"
        for shard in sorted(set(place.values()))
    ]
    assert [file.rows for file in files] == [0] * len(files)  # how many users there are is private
    texts = read_shards(contents(files, key))
    assert listed(texts) == [
        (digest, number, [raw for _, raw in own]) for digest, (number, own) in ordered
    ]
    assert texts.addresses.dtype == np.uint64
    assert texts.groups.dtype == texts.words.dtype == np.int32
    assert texts.of_users.dtype == texts.of_texts.dtype == np.int64
    assert texts.of_users[-1] == len(texts.of_texts) - 1
    assert texts.of_texts[-1] == len(texts.words)


@pytest.mark.slow
def test_bytes_do_not_depend_on_the_engine(tmp_path: Path) -> None:
    # They name the training, whose noise would else be drawn again. Kills: users in the order in
    # which they arrive.
    users, key = users_of(300), key_of()
    (tmp_path / "other").mkdir()
    once = contents(written(users, 2, key, tmp_path), key)
    repeated = written(users[::-1], 2, key, tmp_path / "other", bundle_repeat=1)
    assert contents(repeated, key) == once


def test_no_shard_holds_a_text_that_can_be_read(tmp_path: Path) -> None:
    # Kills: plain Parquet beside the output.
    words = np.arange(1000, dtype="<i4").tobytes()
    digest = os.urandom(16)
    key = key_of()
    (file,) = written([(digest, (0, [(1, words)]))], 1, key, tmp_path)
    stored = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    plain = contents([file], key)[0]
    for secret in (b"PAR1", digest, words[400:440]):
        assert secret not in stored
    assert b"PAR1" in plain
    assert digest in plain


@pytest.mark.parametrize("shards", [0, 1, 2])
def test_no_users(shards: int, tmp_path: Path) -> None:
    # Of a corpus in which nobody has a budget. Kills: offsets that are missing.
    assert written([], 3, key_of(), tmp_path) == []
    content = io.BytesIO()
    pq.write_table(SCHEMA.empty_table(), content)
    texts = read_shards([content.getvalue()] * shards)
    assert len(texts) == 0
    assert texts.addresses.shape == (0, 2)
    assert texts.of_users.tolist() == texts.of_texts.tolist() == [0]
    assert len(texts.words) == 0
    assert [len(texts.part(number, 3)) for number in range(3)] == [0, 0, 0]


def test_a_user_who_is_there_twice_is_refused(tmp_path: Path) -> None:
    # By a shard that is read twice, or two that an engine has made of one. Kills: a user who counts
    # double, and is protected less.
    key = key_of()
    content = contents(written(users_of(50), 2, key, tmp_path), key)
    read_shards(content)
    with pytest.raises(StageError, match="doubled"):
        read_shards([*content, content[0]])


@settings(deadline=None)
@given(digest=st.binary(min_size=16, max_size=16), shards=st.integers(1, 4096))
def test_a_user_has_one_shard(digest: bytes, shards: int) -> None:
    # In every process. Kills: Python's own hash, which each process salts.
    assert 0 <= shard_of(digest, shards) < shards
    assert shard_of(bytes(16), 1000) == 0xECBB4B55 % 1000  # CRC-32 of sixteen zeros


@pytest.mark.parametrize("shards", [2, 7, 64, 1000])
def test_users_spread_over_the_shards(shards: int) -> None:
    # Chi-square over 20 users a shard and more. Kills: shards of a byte, most of them empty.
    counts = np.bincount(
        [shard_of(os.urandom(16), shards) for _ in range(20_000)], minlength=shards
    )
    assert len(counts) == shards
    assert stats.chisquare(counts).pvalue >= ALPHA
    some = np.bincount([os.urandom(16)[0] % shards for _ in range(20_000)], minlength=shards)
    assert shards < 256 or stats.chisquare(some).pvalue < ALPHA


def test_the_number_of_shards_goes_with_public_figures() -> None:
    # Kills: none for a small corpus, or so many that files are tiny.
    assert shards_for(1, 1) == 1
    assert shards_for(16_777, 1000) == 1
    assert shards_for(16_778, 1000) == 2
    assert shards_for(10**9, 100_000) == 4096
