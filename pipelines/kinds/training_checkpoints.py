"""Checkpoints, from which a training resumes after its process has died.

A checkpoint is one file, replaced as a whole. It holds only noisy and public numbers. It is sealed
under the release key and the training's digest: no other training can resume from it, and nobody
can forge one. A run resumed from forged vectors would be one more noisy answer that nobody counts.
"""

from __future__ import annotations

import io
import posixpath
from dataclasses import dataclass

import numpy as np

from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.mechanisms.skip_gram import Vectors
from quietcorpus.mechanisms.user_training import TrainingState
from quietcorpus.transforms.errors import InputError, StageError, Unavailable, client_errors
from quietcorpus.transforms.sealed import seal, unseal

from ..storage import files as storage


@dataclass(frozen=True)
class Checkpoint:
    """The file that keeps a training's last state.

    Attributes:
        folder: the spec's place for checkpoints.
        release: the release's id, which names the file.
        training: the training's keyed digest.
        key: seals the file.
    """

    folder: str
    release: str
    training: str
    key: ReleaseKey

    @property
    def uri(self) -> str:
        """Return the file's URI."""
        return posixpath.join(self.folder, f"{self.release}.checkpoint")

    def load(self) -> TrainingState | None:
        """Read the last state, or return None if there is none.

        Raises InputError for the checkpoint of another training, and Unavailable if it cannot be
        read.
        """
        with client_errors(
            f"checkpoints: {self.uri}",
            "cannot be read; check the path and the permissions, or run again",
            Unavailable,
        ):
            if not storage.exists(self.uri):
                return None
            sealed = storage.read_bytes(self.uri)
        try:
            content = unseal(sealed, self.training, self.key)
        except StageError:
            raise InputError(
                f"checkpoints: {self.uri} is damaged, or of another training, key, corpus or "
                "machine; delete it, or name another place"
            ) from None
        with np.load(io.BytesIO(content), allow_pickle=False) as found:
            model = Vectors(found["words"], found["contexts"])
            return TrainingState(int(found["step"]), model, found["mean"], found["square"])

    def save(self, state: TrainingState) -> None:
        """Save this state in place of the last one."""
        content = io.BytesIO()
        np.savez(
            content,
            step=np.array(state.step),
            words=state.model.words,
            contexts=state.model.contexts,
            mean=state.mean,
            square=state.square,
        )
        storage.write_whole(self.uri, seal(content.getvalue(), self.training, self.key))
