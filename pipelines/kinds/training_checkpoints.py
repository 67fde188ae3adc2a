"""What a training needs to go on after its process has died: one file, replaced as a whole.

It holds noisy numbers and public ones alone. It is sealed under the release key and the training's
digest, so that no other training goes on from it, and nobody makes one up: a run that went on from
forged vectors would be one more noisy answer that nobody counts.
"""

from __future__ import annotations

import io
import os
import posixpath
from dataclasses import dataclass

import numpy as np

from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.mechanisms.skip_gram import Vectors
from quietcorpus.mechanisms.user_training import State
from quietcorpus.pipelines.storage import files as storage
from quietcorpus.pipelines.storage import places
from quietcorpus.transforms.errors import InputError, StageError, Unavailable
from quietcorpus.transforms.sealed import seal, unseal


@dataclass(frozen=True)
class Checkpoint:
    """Where a training's last state is kept.

    Attributes:
        folder: the spec's place for checkpoints.
        release: the release's id, which names the file.
        training: the training's keyed digest.
        key: seals it.
    """

    folder: str
    release: str
    training: str
    key: ReleaseKey

    @property
    def uri(self) -> str:
        """The file."""
        return posixpath.join(self.folder, f"{self.release}.checkpoint")

    def load(self) -> State | None:
        """The last state, or None if there is none; raises InputError for another training's."""
        try:
            if not storage.exists(self.uri):
                return None
            sealed = storage.read_bytes(self.uri)
        except Exception:  # every object store's client has exceptions of its own
            raise Unavailable(
                f"checkpoints: {self.uri} cannot be read; check the path and the permissions, or "
                "run again"
            ) from None
        try:
            content = unseal(sealed, self.training, self.key)
        except StageError:
            raise InputError(
                f"checkpoints: {self.uri} is damaged, or of another training, key, corpus or "
                "machine; delete it, or name another place"
            ) from None
        with np.load(io.BytesIO(content), allow_pickle=False) as found:
            model = Vectors(found["words"], found["contexts"])
            return State(int(found["step"]), model, found["mean"], found["square"])

    def save(self, state: State) -> None:
        """Put this state in the last one's place."""
        content = io.BytesIO()
        np.savez(
            content,
            step=np.array(state.step),
            words=state.model.words,
            contexts=state.model.contexts,
            mean=state.mean,
            square=state.square,
        )
        sealed = seal(content.getvalue(), self.training, self.key)
        if not places.is_local(self.uri):  # where an object appears whole
            storage.write_bytes(self.uri, sealed)
            return
        os.makedirs(self.folder, exist_ok=True)
        partial = f"{self.uri}.partial"
        with open(partial, "wb") as stream:
            stream.write(sealed)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(partial, self.uri)
