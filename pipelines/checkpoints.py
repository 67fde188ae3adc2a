"""What a training needs to go on after its process has died: one file, replaced as a whole.

It holds noisy numbers and public ones alone, and names the training by a keyed digest, so that no
other training goes on from it.
"""

from __future__ import annotations

import io
import os
import posixpath
import uuid
from dataclasses import dataclass

import numpy as np
from apache_beam.io.filesystem import BeamIOError

from mechanisms.skip_gram import Vectors
from mechanisms.user_training import State
from pipelines import storage
from transforms.errors import InputError


@dataclass(frozen=True)
class Checkpoint:
    """Where a training's last state is kept.

    Attributes:
        folder: the spec's place for checkpoints.
        release: the release's id, which names the file.
        training: the training's keyed digest.
    """

    folder: str
    release: str
    training: str

    @property
    def uri(self) -> str:
        """The file."""
        return posixpath.join(self.folder, f"{self.release}.checkpoint.npz")

    def load(self) -> State | None:
        """The last state, or None if there is none; raises InputError for another training's."""
        try:
            if not storage.exists(self.uri):
                return None
            with np.load(io.BytesIO(storage.read_bytes(self.uri)), allow_pickle=False) as found:
                if str(found["training"]) != self.training:
                    raise InputError(
                        f"checkpoints: {self.uri} is of another training, key or corpus; delete "
                        "it, or name another place"
                    )
                model = Vectors(found["words"], found["contexts"])
                return State(int(found["step"]), model, found["mean"], found["square"])
        except (OSError, BeamIOError, ValueError, KeyError):
            raise InputError(
                f"checkpoints: {self.uri} is no checkpoint that can be read; delete it"
            ) from None

    def save(self, state: State) -> None:
        """Put this state in the last one's place."""
        content = io.BytesIO()
        np.savez(
            content,
            training=np.array(self.training),
            step=np.array(state.step),
            words=state.model.words,
            contexts=state.model.contexts,
            mean=state.mean,
            square=state.square,
        )
        if not storage.is_local(self.uri):  # where an object appears whole
            storage.write_bytes(self.uri, content.getvalue())
            return
        os.makedirs(self.folder, exist_ok=True)
        partial = f"{self.uri}.{uuid.uuid4().hex[:12]}"
        storage.write_bytes(partial, content.getvalue())
        os.replace(partial, self.uri)
