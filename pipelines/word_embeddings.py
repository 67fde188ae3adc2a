"""What both ways to word embeddings share: users, their vocabulary, the files, the limits."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import cached_property
from importlib.metadata import version

import apache_beam as beam
import numpy as np
import numpy.typing as npt

from indexes.vocabulary import Vocabulary
from mechanisms.guarantees import Spending, UserPrivacy, ceiling, compose
from mechanisms.user_vocabulary import UserVocabulary
from pipelines import card, storage
from pipelines.embeddings_output import write_embeddings
from pipelines.job import Job, refuse_repeated, splits_of
from pipelines.manifest import WriteManifest
from pipelines.spec_embeddings import WordEmbeddingsSpec
from transforms.artefacts import Artefact
from transforms.errors import InputError, redacted
from transforms.identifiers import TAG
from transforms.shards import TALLIES, Tally, Written, write_tables
from transforms.training_shards import shards_for
from transforms.user_vocabulary import SelectUserVocabulary
from transforms.users import GatherUsers, Users
from transforms.vocabulary import load, vocabulary_table

_LOGGER = logging.getLogger("quietcorpus.embeddings")


@dataclass(frozen=True)
class Writers:
    """Who writes, in which words: the part of a release that depends on no method.

    Attributes:
        spec: the mechanism block.
        public: the vocabulary, if it is a public list.
        selection: its private selection, if not.
        size: of the public list.
    """

    spec: WordEmbeddingsSpec
    public: Artefact | None
    selection: UserVocabulary | None
    size: int | None

    @classmethod
    def found(cls, spec: WordEmbeddingsSpec) -> Writers:
        """Raises InputError for a vocabulary that cannot be used."""
        private = spec.vocabulary.private
        if spec.delta * spec.users >= 1:
            _LOGGER.warning("not protected: %s", large_delta(spec.delta, spec.users))
        if private is not None:
            try:
                selection = UserVocabulary(private.words, private.epsilon, private.delta)
            except ValueError as error:
                raise InputError(f"mechanism.vocabulary.private: {error}") from None
            return cls(spec, None, selection, None)
        assert spec.vocabulary.public is not None
        public = Artefact.found("mechanism.vocabulary.public", spec.vocabulary.public)
        return cls(spec, public, None, len(load(public)))

    @cached_property
    def budgets(self) -> dict[str, Fraction]:
        """What each group's users may spend after the vocabulary, from the least on.

        The one group of users without budgets of their own is called "".
        """
        given = self.spec.budgets.of_groups if self.spec.budgets else {"": self.spec.epsilon}
        left = {name: epsilon - self.before for name, epsilon in given.items() if epsilon}
        return dict(sorted(left.items(), key=lambda item: (item[1], item[0])))

    @property
    def before(self) -> Fraction:
        """What the vocabulary costs every user."""
        return self.selection.epsilon if self.selection else Fraction(0)

    @property
    def key(self) -> str:
        """The spec's key of the budgets."""
        return f"mechanism.{self.spec.key}"

    def warn_of_idle(self, groups: Iterable[str]) -> None:
        """Tell that these groups' budgets keep their users out of what is learnt."""
        for name in groups:
            _LOGGER.warning(
                "%s: %s: so little that its users contribute nothing to the vectors; raise it, or "
                "lower the largest",
                self.key,
                name,
            )

    @property
    def delta(self) -> Fraction:
        """What is left of delta after the vocabulary."""
        return self.spec.delta - (self.selection.delta if self.selection else 0)

    @property
    def users(self) -> Users:
        """How users are told apart and bounded."""
        groups, budgets = tuple(self.budgets), self.spec.budgets
        if budgets is None:
            return Users(self.spec.user, self.spec.tokens, None, groups)
        # What users must have at least: rounding takes no budget for more than it is.
        up = Context(prec=50, rounding=ROUND_CEILING)
        numbers = [budgets.of_groups[name] for name in groups] if budgets.levels else []
        levels = tuple(up.divide(Decimal(n.numerator), Decimal(n.denominator)) for n in numbers)
        return Users(self.spec.user, self.spec.tokens, budgets.column, groups, levels)

    @property
    def shards(self) -> int:
        """The number of parts in which users are worked on, from public figures alone."""
        return shards_for(self.spec.users, self.spec.tokens)

    @property
    def artefacts(self) -> Sequence[card.Artefact]:
        """The vocabulary, if it is public."""
        return [card.public_artefact("vocabulary", self.public)] if self.public else []

    def gathered(
        self, pipeline: beam.Pipeline, job: Job
    ) -> tuple[beam.pvalue.AsSingleton, dict[str, beam.PCollection]]:
        """The vocabulary, and what `GatherUsers` yields."""
        splits = splits_of(pipeline, job)
        if self.selection is None:
            listed = pipeline | "public vocabulary" >> beam.Create([self.public])
            vocabulary = listed | "load" >> beam.Map(load)
        else:
            vocabulary = splits | "vocabulary" >> SelectUserVocabulary(
                job.corpus, self.users, self.selection, job.key
            )
        words = beam.pvalue.AsSingleton(vocabulary)
        gathered = splits | "users" >> GatherUsers(
            job.corpus, self.users, words, job.key, job.rejects
        )
        refuse_repeated(gathered[TAG], job)
        return words, gathered

    def write(
        self,
        pipeline: beam.Pipeline,
        job: Job,
        words: beam.pvalue.AsSingleton,
        gathered: Mapping[str, beam.PCollection],
        files: beam.PCollection[Written],
    ) -> None:
        """Write the manifest of the files for `finish`, and of the vocabulary."""
        once = pipeline | "once" >> beam.Create([None])
        table = once | "write vocabulary" >> beam.ParDo(_WriteVocabulary(job.staging), words)
        (files, gathered[TALLIES], table) | "manifest" >> WriteManifest(job.staging)

    def check(self, tally: Tally) -> None:
        """Refuse a corpus in another language than the vocabulary's."""
        if not tally.known:
            raise InputError(
                "mechanism.vocabulary: no document has a word of it; check input.text and the "
                "vocabulary's language"
            )

    @property
    def whose(self) -> str:
        """What a user is says the column."""
        return f"users of the column {self.spec.user}"

    def spendings(self, stage: str, spent: Mapping[str, Fraction]) -> list[Spending[UserPrivacy]]:
        """What the vocabulary cost, and what a stage cost the users of each group."""
        groups = tuple(spent.items()) if self.spec.budgets else ()
        own = Spending(stage, UserPrivacy(max(spent.values()), self.delta, groups))
        before = [Spending("vocabulary", self.selection.guarantee)] if self.selection else []
        return [*before, own]

    def publish(
        self,
        job: Job,
        words: Sequence[str],
        vectors: npt.NDArray[np.float32],
        spendings: Sequence[Spending[UserPrivacy]],
    ) -> list[Written]:
        """Write the vectors of words, float32 (n, d), in every form."""
        total = compose(spendings)
        promise = card.guarantee(total, self.not_protected(total), self.artefacts)
        return write_embeddings(words, vectors, promise, job.staging)

    def not_protected(self, total: UserPrivacy) -> list[str]:
        """What a reader may learn."""
        users = self.spec.users
        lines = [
            "the number of documents and of unreadable records, which this card states",
            "what a person writes under several names: each name is a user of its own",
            "what other users write about a person",
            "whether there is a release: a corpus without a word of the vocabulary, with too many "
            "unreadable records, or with an identifier twice, makes none",
            "anything from whoever runs the release and sees the text",
        ]
        if self.spec.budgets:
            none = (
                "names no listed group"
                if self.spec.budgets.epsilon
                else "has no number, or one below the least level,"
            )
            lines.append(
                f"who has no budget: users any of whose documents {none} have no part in the "
                "release; a user of several groups has the least budget of them"
            )
        if total.delta * users >= 1:
            lines.insert(0, large_delta(total.delta, users))
        return lines


def large_delta(delta: Fraction, users: int) -> str:
    """What a delta of so much means."""
    return (
        f"any one of about {users:,} users with certainty: delta, {ceiling(delta)}, is not below "
        "1 / users, and a mechanism that published one user's text whole would keep to it"
    )


def versions_of(*packages: str) -> str:
    """What of these is installed here."""
    return ", ".join(f"{name} {version(name)}" for name in packages)


def words_in(files: Sequence[Written]) -> list[str]:
    """The words of the vocabulary that the pipeline wrote."""
    (staged,) = (file.staged for file in files if file.path == storage.VOCABULARY)
    table = storage.read_table(staged)
    words: list[str] = table["term"].to_pylist()
    return words


class _WriteVocabulary(beam.DoFn):
    def __init__(self, staging: str) -> None:
        self._staging = staging

    @redacted
    def process(self, _: None, vocabulary: Vocabulary) -> Iterator[Written]:
        table = vocabulary_table(vocabulary, None)
        yield write_tables([table], table.schema, storage.VOCABULARY, self._staging)
