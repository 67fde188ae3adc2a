"""The job of `kind: word-embeddings` with `method: sgd`: users are gathered, then trained on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import apache_beam as beam

from quietcorpus.mechanisms.accounting import Schedule
from quietcorpus.mechanisms.clipped_sum import ClippedSum
from quietcorpus.mechanisms.dominance import of_schedule as concentrated_of
from quietcorpus.mechanisms.filters import Concentrated
from quietcorpus.mechanisms.guarantees import Spending, UserPrivacy, compose
from quietcorpus.mechanisms.skip_gram import SkipGram, device_name
from quietcorpus.mechanisms.user_training import Training
from quietcorpus.transforms.errors import InputError, NoisyOutcome
from quietcorpus.transforms.installed import require_installed
from quietcorpus.transforms.shards import Written
from quietcorpus.transforms.users.training_shards import FOLDER, WriteTrainingShards
from quietcorpus.transforms.vocabulary import load

from ..card import model as card
from ..card import statements
from ..card.embeddings import LEAST_ON_NOISE, of_schedule, papers_figure
from ..card.noise import ACCOUNTANTS
from ..environment import processor
from ..schema.embeddings import TrainingSpec, WordEmbeddingsSpec
from ..storage.files import rows_of
from ..storage.layout import TABLE
from .embeddings_users import (
    UserCorpus,
    versions_of,
    words_in,
)
from .job import Job
from .kind import Account
from .training import TrainingRun
from .training_start import PublicStart
from .user_level import UserLevelKind

_LARGEST_MODEL = 1 << 26


@dataclass(frozen=True)
class TrainedEmbeddingsKind(UserLevelKind):
    """The kind `word-embeddings` by `method: sgd`, with its noise and sampling rates computed."""

    given: TrainingSpec
    schedule: Schedule
    lot: int
    start: PublicStart | None

    least_on_noise = LEAST_ON_NOISE["sgd"]
    laws = None  # its noise is bound to every byte of the software

    def __post_init__(self) -> None:
        self.corpus.users.require_groups(group.name for group in self.schedule.groups)

    @classmethod
    def resolve(cls, spec: WordEmbeddingsSpec, workers: int) -> TrainedEmbeddingsKind:
        """Compute the noise and the sampling rates.

        Raises InputError for a vocabulary, a budget or a start that cannot be used, and if PyTorch,
        or Ray for several workers, is not installed.
        """
        remedy = ", or take method: cooccurrence"
        require_installed("torch", key="mechanism.method", extra="training", otherwise=remedy)
        if workers > 1:
            remedy = ", or train in one process"
            require_installed("ray", key="workers", extra="ray", otherwise=remedy)
        corpus = UserCorpus.resolve(spec)
        _refuse_large(corpus.size or 0, spec.dimensions)
        given = spec.training
        assert given is not None
        assert given.lot is not None
        start = _start(given, corpus)
        try:
            schedule = Schedule.solved(
                corpus.budgets,
                corpus.delta,
                Fraction(given.lot, spec.users),
                given.steps,
                leave=given.participation == "steps",
            )
        except ValueError as error:
            raise InputError(f"{corpus.key}: {error}") from None
        made = cls(corpus, given, schedule, given.lot, start)
        made.refuse_few()
        return made

    @property
    def artefacts(self) -> Sequence[card.UsedArtefact]:
        """Return the public vocabulary and the vectors of the start, if there are any."""
        start = [statements.public_artefact("start", self.start.source)] if self.start else []
        return [*super().artefacts, *start]

    @property
    def on_noise(self) -> float:
        """Return the users per standard deviation of the noise over all steps.

        The unit is the most that one user adds to a step. The steps' noise adds in squares.
        """
        return float(self.lot / self.schedule.noise_multiplier) * math.sqrt(self.until)

    @property
    def doubts(self) -> Sequence[str]:
        idle = (group.name for group in self.schedule.groups if not group.steps)
        return self.corpus.doubts_of_idle(idle)

    @property
    def computing(self) -> str:
        """Return the software and hardware that account, draw and train.

        On another machine the last digits differ, and with them the draws.
        """
        return f"{self._software}; {device_name()}; {processor.model()}"

    @property
    def _software(self) -> str:
        """Return the software, for the card: a name of a device could be any text."""
        versions = versions_of(*ACCOUNTANTS, "torch")
        return "; ".join(filter(None, (versions, self.corpus.tokenizer.software)))

    def build(self, pipeline: beam.Pipeline, job: Job) -> None:
        """Add the job to a pipeline, without the training, which is the launcher's."""
        words, gathered = self.corpus.gathered(pipeline, job)
        files = gathered["shares"] | "shards" >> WriteTrainingShards(
            self.corpus.shards, job.key, job.staging
        )
        self.corpus.write(pipeline, job, words, gathered, files)

    @property
    def steps_to_finish(self) -> int:
        return 1

    def finish(self, job: Job, files: Sequence[Written]) -> Sequence[Written]:
        words = words_in(files, job.key())
        _refuse_large(len(words), self.corpus.spec.dimensions, NoisyOutcome)
        shards = sorted((f for f in files if f.path.startswith(f"{FOLDER}/")), key=lambda f: f.path)
        course = TrainingRun(
            self.training,
            self.schedule,
            self.corpus.before,
            self.corpus.users.stage_parameters,
            self.until,
            words,
            job.spec.checkpoints,
            job.spec.release,
            job.workers,
            job.steps,
            self.computing,
            self.start,
        )
        state = course.run(shards, job.key)
        return self.write_vectors(job, words, state.model.words)

    @property
    def until(self) -> int:
        """Return the number of the last step."""
        return self.given.stop_after or self.given.steps

    @property
    def training(self) -> Training:
        """Return the settings of the training steps."""
        spec, given = self.corpus.spec, self.given
        settings = SkipGram(spec.dimensions, spec.window, given.negatives, given.clip)
        noise = ClippedSum(self.schedule.noise_multiplier)
        return Training(settings, noise, float(self.lot), given.learning_rate)

    @property
    def spendings(self) -> list[Spending[UserPrivacy]]:
        """Return the cost of each stage."""
        spent = {g.name: self.schedule.spent(g, self.until) for g in self.schedule.groups}
        return self.corpus.spendings("training", spent)

    @property
    def concentrated(self) -> Concentrated | None:
        found = concentrated_of(self.schedule, self.until)
        return found and self.corpus.concentrated(found)

    def account(self, files: Sequence[Written]) -> Account:
        spendings = self.spendings
        total = compose(spendings)
        resolved = {
            **of_schedule(self.schedule, self.until, self.lot),
            "vocabulary_size": rows_of(files, TABLE),
            "software": self._software,
        }
        return Account(spendings, total, resolved, self.corpus.not_protected, self._papers_figure())

    def _papers_figure(self) -> card.PapersFigure:
        schedule = self.schedule
        most = max(schedule.groups, key=lambda group: group.rate)
        return papers_figure(
            most.rate, schedule.noise_multiplier, self.until, Fraction(self.lot), schedule.delta
        )


def _start(given: TrainingSpec, corpus: UserCorpus) -> PublicStart | None:
    if given.start is None:
        return None
    words = load(corpus.public, corpus.tokenizer).terms.to_pylist() if corpus.public else None
    return PublicStart.resolve(given.start, corpus.spec.dimensions, words)


def _refuse_large(words: int, dimensions: int, refusal: type[InputError] = InputError) -> None:
    if words * dimensions > _LARGEST_MODEL:
        raise refusal(
            f"mechanism.vocabulary: {words} words of {dimensions} dimensions are more than "
            f"{_LARGEST_MODEL} numbers; give fewer"
        )
