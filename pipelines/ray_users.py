"""Users divided among Ray's workers, whose sums of a step are added up."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from mechanisms.accounting import Group
from mechanisms.sampled_users import Texts, Users
from mechanisms.skip_gram import Rows, SkipGram, Vectors
from mechanisms.user_training import Sums
from pipelines.ray_session import ray_session
from transforms.errors import InputError, StageError
from transforms.vocabulary import KeySource

STAGE = "training"
_MISSING = "--workers: ray is not installed; install the extra [ray], or train in one process"


def check_installed(workers: int) -> None:
    """Raise InputError if so many processes need what is not installed."""
    if workers > 1 and importlib.util.find_spec("ray") is None:
        raise InputError(_MISSING)


class _Part:
    """A Ray actor: some of the users. It reads the master key from its own environment."""

    def __init__(
        self,
        texts: Texts,
        groups: Sequence[Group],
        settings: SkipGram,
        key: KeySource,
        training: bytes,
    ) -> None:
        self._users = Users(texts, groups, settings, key().stage(STAGE, training))

    def sums(self, step: int, model: Vectors, negatives: Rows) -> npt.NDArray[np.int64]:
        return self._users.sums(step, model, negatives)


@contextmanager
def sums_of(
    texts: Texts,
    groups: Sequence[Group],
    settings: SkipGram,
    key: KeySource,
    training: bytes,
    workers: int,
) -> Iterator[Sums]:
    """What all users add to a step, by this process or by several.

    They are Ray's, on this machine, whatever cluster RAY_ADDRESS names: what they are given is
    private text, which Ray neither encrypts nor, by itself, keeps in memory. `training` is the
    stage's parameters.
    """
    if workers == 1:
        yield Users(texts, groups, settings, key().stage(STAGE, training)).sums
        return
    with ray_session(_MISSING, workers, private=True) as ray:
        count = max(1, min(len(texts), workers))
        part = ray.remote(num_cpus=1)(_Part)
        actors = [
            part.remote(texts.part(number, count), groups, settings, key, training)
            for number in range(count)
        ]
        yield functools.partial(_added, ray, actors)


def _added(
    ray: Any, actors: Sequence[Any], step: int, model: Vectors, negatives: Rows
) -> npt.NDArray[np.int64]:
    shared = ray.put(model)
    try:
        parts = ray.get([actor.sums.remote(step, shared, negatives) for actor in actors])
    except ray.exceptions.RayActorError:
        raise StageError(
            "a worker of the training was killed or had too little memory; run again, which goes "
            "on from the last checkpoint, if there is a place for them"
        ) from None
    return functools.reduce(np.add, parts)
