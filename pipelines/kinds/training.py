"""The training of word embeddings, in the launcher, from the shards that the pipeline wrote."""

from __future__ import annotations

import functools
import hashlib
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from quietcorpus.mechanisms.accounting import Schedule
from quietcorpus.mechanisms.encoding import Value
from quietcorpus.mechanisms.guarantees import ceiling
from quietcorpus.mechanisms.keystream import Keystream
from quietcorpus.mechanisms.user_training import Sums, Training, TrainingState
from quietcorpus.transforms.errors import InputError, NoisyOutcome
from quietcorpus.transforms.shards import Written, staged_content
from quietcorpus.transforms.users.training_shards import read_shards
from quietcorpus.transforms.vocabulary import KeySource

from ..environment.version import environment_digest
from ..terminal.progress import Steps
from .training_checkpoints import Checkpoint
from .training_start import PublicStart
from .training_workers import STAGE, sums_of

_TRAINING_TO_SAVING = 50.0  # seconds of training for each second of saving, at least
_AGAIN_SECONDS = 30.0  # at least, before a failed save is tried again
_LOGGER = logging.getLogger("quietcorpus.training")


@dataclass(frozen=True)
class TrainingRun:
    """The training of one release.

    Attributes:
        training: the settings of its steps.
        schedule: the users' budgets and sampling rates.
        before: the epsilon that every user has spent before the training.
        users: how users were identified and bounded.
        until: the number of the last step.
        words: the vocabulary.
        checkpoints: the folder for checkpoints, if any.
        release: the release's id.
        workers: the number of processes that share the users.
        steps: the steps of the run, of which the training is one.
        computing: the software and hardware that the updates' last digits depend on, besides the
            code.
        start: the public vectors that it starts from, if any.
    """

    training: Training
    schedule: Schedule
    before: Fraction
    users: Mapping[str, Value]
    until: int
    words: Sequence[str]
    checkpoints: str | None
    release: str
    workers: int
    steps: Steps
    computing: str
    start: PublicStart | None = None

    def run(self, shards: Sequence[Written], source: KeySource) -> TrainingState:
        """Train from the last checkpoint, if any, and return the state after the last step.

        Raises InputError for a checkpoint of another training or of a later step, and for a
        training that leaves the finite numbers, or starts from a file that has changed.
        """
        key = source()
        content = [b"".join(staged_content(file, key)) for file in shards]
        digests = [hashlib.sha256(part).hexdigest() for part in content]
        texts = read_shards(content)
        del content  # it is as large as the texts
        # The digest binds the noise to the settings, the data, the code and the machine. Two
        # different trainings must not draw the same noise: their difference would cancel it.
        run = key.stage("training run", 1).digest(
            training=self.training.stage_parameters,
            schedule=self.schedule.stage_parameters,
            users=self.users,
            words=self.words,
            shards=digests,
            computing=self.computing,
            environment=environment_digest(),
            **({"start": self.start.source.digest} if self.start else {}),
        )
        checkpoint = (
            Checkpoint(self.checkpoints, self.release, run, key) if self.checkpoints else None
        )
        state = checkpoint.load() if checkpoint else None
        if state is None:
            state = TrainingState.initial(
                len(self.words),
                self.training.settings.dimensions,
                self.start.vectors(self.words) if self.start else None,
            )
        elif state.step > self.until:
            raise InputError(
                f"mechanism.training.stop_after: {self.until} steps are fewer than the "
                f"{state.step} that the checkpoint has; give at least as many"
            )
        else:
            _LOGGER.info("going on after step %d", state.step)
        with sums_of(
            texts,
            self.schedule.groups,
            self.training.settings,
            source,
            run,
            self.workers,
        ) as sums:
            try:
                return self._trained(state, sums, key.stage(STAGE, 1, run=run), checkpoint)
            except FloatingPointError as error:
                raise NoisyOutcome(
                    f"mechanism.training: {error}; lower learning_rate, or take fewer steps"
                ) from None

    def _trained(
        self, state: TrainingState, sums: Sums, stream: Keystream, checkpoint: Checkpoint | None
    ) -> TrainingState:
        due = time.monotonic()
        last = state
        spent = functools.partial(spent_by, self.schedule, self.before)
        with self.steps.step(
            "training", self.until, "steps", done=state.step, note=spent
        ) as display:
            for last in self.training.run(state, self.until, sums, stream):
                display.show(last.step)
                if checkpoint and (began := time.monotonic()) >= due:
                    saved = _save(checkpoint, last)
                    ended = time.monotonic()
                    due = ended + _TRAINING_TO_SAVING * (ended - began)
                    due = due if saved else max(due, ended + _AGAIN_SECONDS)
        if checkpoint:
            _save(checkpoint, last)
        return last


def _save(checkpoint: Checkpoint, state: TrainingState) -> bool:
    """Save a checkpoint, and return whether it could be written."""
    try:
        checkpoint.save(state)
    except Exception:  # of any object store's client; a failed save must not end the training
        _LOGGER.warning("%s could not be written", checkpoint.uri)
        return False
    return True


def spent_by(schedule: Schedule, before: Fraction, done: int) -> str:
    """Return in words the epsilon that each group's users have spent in all after `done` steps."""
    spent = {
        group.name: ceiling(before + schedule.spent(group, done), 3) for group in schedule.groups
    }
    of_groups = [f"{epsilon} ({name})" if name else epsilon for name, epsilon in spent.items()]
    return f"epsilon spent {', '.join(of_groups)}"
