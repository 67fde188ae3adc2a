"""What a training is known by, which goes through Ray's store in the clear."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pytest
from running import run

import quietcorpus.pipelines.kinds.training
from quietcorpus.mechanisms.accounting import Group, Schedule
from quietcorpus.mechanisms.clipped_sum import ClippedSum
from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.mechanisms.skip_gram import SkipGram
from quietcorpus.mechanisms.user_training import Training
from quietcorpus.pipelines.kinds.training import TrainingRun
from quietcorpus.transforms.shards import Written, staged_content
from quietcorpus.transforms.users.training_shards import WriteTrainingShards

GROUPS = (Group("", Fraction(4), Fraction(1, 2), 3),)
SCHEDULE = Schedule(Fraction(2), Fraction(1, 10**6), 3, GROUPS)
TRAINING = Training(SkipGram(4, 2, 5, 1.0), ClippedSum(Fraction(2)), 3.0, 0.01)


def course(users: dict[str, Any]) -> TrainingRun:
    # No step is taken: it is only asked what the training is known by.
    words = ["alpha", "beta", "gamma"]
    return TrainingRun(
        TRAINING, SCHEDULE, Fraction(0), users, 0, words, None, "test", 1, True, "this machine"
    )


def staged(folder: Path, key: ReleaseKey, words: list[int]) -> list[Written]:
    user = b"u" * 16, (0, [(1, np.array(words, "<i4").tobytes())])

    def build(pipeline: beam.Pipeline) -> dict[str, beam.PCollection]:
        write = WriteTrainingShards(1, lambda: key, str(folder))
        return {"files": pipeline | beam.Create([user]) | write}

    return run(build)["files"]


def known_by(
    monkeypatch: pytest.MonkeyPatch, files: list[Written], key: ReleaseKey, **users: Any
) -> str:
    passed: list[Any] = []

    @contextmanager
    def sums_of(*arguments: Any) -> Iterator[Any]:
        passed.extend(arguments)
        yield None

    monkeypatch.setattr(quietcorpus.pipelines.kinds.training, "sums_of", sums_of)
    course(users).run(files, lambda: key)
    found: str = passed[4]
    digests = [hashlib.sha256(b"".join(staged_content(file, key))).hexdigest() for file in files]
    assert all(digest not in repr(passed) for digest in digests)
    return found


def test_no_digest_of_users_texts_is_passed_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # Whoever sees Ray's store could try texts against it. Kills: a digest that needs no key.
    one, other = (ReleaseKey(os.urandom(32)) for _ in range(2))
    found = {
        known_by(monkeypatch, staged(tmp_path / "a", one, [0, 1]), one),
        known_by(monkeypatch, staged(tmp_path / "b", other, [0, 1]), other),
        # Kills: a training on other texts, or of users otherwise bounded, that draws alike.
        known_by(monkeypatch, staged(tmp_path / "c", one, [0, 2]), one),
        known_by(monkeypatch, staged(tmp_path / "a", one, [0, 1]), one, tokens=50),
    }
    assert len(found) == 4
    again = known_by(monkeypatch, staged(tmp_path / "d", one, [0, 1]), one)
    assert again in found
