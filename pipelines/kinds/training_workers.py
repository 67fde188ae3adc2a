"""The users of a training, divided among Ray's workers, whose sums of a step are added."""

from __future__ import annotations

import functools
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt

from quietcorpus.mechanisms.accounting import Group
from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.mechanisms.sampled_users import SampledUsers, Texts
from quietcorpus.mechanisms.skip_gram import Rows, SkipGram, Vectors
from quietcorpus.mechanisms.user_training import Sums
from quietcorpus.transforms.sealed import seal, unseal
from quietcorpus.transforms.temporary import one_torch_thread
from quietcorpus.transforms.vocabulary import KeySource

from ..engine.parallel import ray_session

STAGE = "training"


class _Part:
    """A Ray actor that holds some of the users.

    It reads the master key from its own environment. The texts that it is given and the sums that
    it returns lie in Ray's store, which may be a file on a disk: both are encrypted under the
    release key.
    """

    def __init__(
        self,
        number: int,
        texts: bytes,
        groups: Sequence[Group],
        settings: SkipGram,
        key: KeySource,
        run: str,
    ) -> None:
        self._number = number
        self._run = run
        self._key = key()
        own = _unsealed_texts(texts, _texts_name(run, number), self._key)
        self._users = SampledUsers(own, groups, settings, self._key.stage(STAGE, 1, run=run))

    def sums(self, step: int, model: Vectors, negatives: Rows) -> bytes:
        found = self._users.sums(step, model, negatives)
        return seal(found.tobytes(), _sums_name(self._run, self._number, step), self._key)


def _texts_name(run: str, number: int) -> str:
    return f"training {run}: the texts of worker {number}"


def _sums_name(run: str, number: int, step: int) -> str:
    return f"training {run}: the sums of worker {number} in step {step}"


def _sealed_texts(texts: Texts, name: str, key: ReleaseKey) -> bytes:
    content = io.BytesIO()
    np.savez(content, **{field.name: getattr(texts, field.name) for field in fields(Texts)})
    return seal(content.getvalue(), name, key)


def _unsealed_texts(sealed: bytes, name: str, key: ReleaseKey) -> Texts:
    with np.load(io.BytesIO(unseal(sealed, name, key))) as arrays:
        return Texts(**arrays)


@contextmanager
def sums_of(
    texts: Texts,
    groups: Sequence[Group],
    settings: SkipGram,
    key: KeySource,
    run: str,
    workers: int,
) -> Iterator[Sums]:
    """Yield the function that sums what all users add to a step, in this process or in several.

    Several processes are Ray's, on this machine, whatever cluster RAY_ADDRESS names, because they
    work on private text. `run` is the keyed digest of the training.
    """
    release_key = key()
    if workers == 1:
        with one_torch_thread():
            yield SampledUsers(texts, groups, settings, release_key.stage(STAGE, 1, run=run)).sums
        return
    remedy = "run again, which goes on from the last checkpoint, if there is a place for them"
    with ray_session(workers, work="training", remedy=remedy, private=True) as ray:
        count = max(1, min(len(texts), workers))
        part = ray.remote(num_cpus=1)(_Part)
        actors = []
        for number in range(count):
            sealed = _sealed_texts(texts.part(number, count), _texts_name(run, number), release_key)
            actors.append(part.remote(number, sealed, groups, settings, key, run))
        yield functools.partial(_added, ray, actors, run, release_key)


def _added(
    ray: Any,
    actors: Sequence[Any],
    run: str,
    key: ReleaseKey,
    step: int,
    model: Vectors,
    negatives: Rows,
) -> npt.NDArray[np.int64]:
    shared = ray.put(model)  # not encrypted: it is made of noisy sums alone
    parts = ray.get([actor.sums.remote(step, shared, negatives) for actor in actors])
    total = np.zeros((2 * len(model.words), model.words.shape[1]), dtype=np.int64)
    for number, sealed in enumerate(parts):
        content = unseal(sealed, _sums_name(run, number, step), key)
        total += np.frombuffer(content, dtype=np.int64).reshape(total.shape)
    return total
