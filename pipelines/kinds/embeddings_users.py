"""The parts that both methods of word embeddings share: users, vocabulary, files and limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib.metadata import version

import apache_beam as beam
import pyarrow as pa

from quietcorpus.indexes.tokenizers import Tokenizer
from quietcorpus.mechanisms.filters import Concentrated
from quietcorpus.mechanisms.guarantees import Spending, UserPrivacy
from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.mechanisms.user_vocabulary import UserVocabulary
from quietcorpus.transforms.artefacts.files import FileSource
from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.reading.identifiers import TAG
from quietcorpus.transforms.reading.parquet_files import table_in
from quietcorpus.transforms.shards import TALLIES, Written, staged_content
from quietcorpus.transforms.users.training_shards import shards_for
from quietcorpus.transforms.users.user_vocabulary import SelectUserVocabulary
from quietcorpus.transforms.users.users import BoundedUsers, GatherUsers
from quietcorpus.transforms.vocabulary import load

from ..card import model as card
from ..card import statements
from ..card.embeddings import embedding_limits
from ..schema.embeddings import WordEmbeddingsSpec
from ..schema.tokenizers import tokenizer_of
from ..storage import layout
from .job import Job, refuse_repeated, splits_of
from .languages import require_rule
from .run_files import WriteRunFiles
from .tables import WriteTables
from .user_budgets import BudgetedUsers


@dataclass(frozen=True)
class UserCorpus(BudgetedUsers):
    """The users and their vocabulary: the part of a release that both methods share.

    Attributes:
        spec: the mechanism block.
        public: the vocabulary, if it is a public list.
        selection: the vocabulary's private selection, if it is not.
        size: the number of words of a public list.
        tokenizer: the tokeniser of the texts.
    """

    spec: WordEmbeddingsSpec
    public: FileSource | None
    selection: UserVocabulary | None
    size: int | None
    tokenizer: Tokenizer

    @classmethod
    def resolve(cls, spec: WordEmbeddingsSpec) -> UserCorpus:
        """Find the vocabulary; raises InputError if it cannot be used."""
        tokenizer = tokenizer_of(spec.tokenizer)
        private = spec.vocabulary.private
        if private is not None:
            try:
                selection = UserVocabulary(private.words, private.epsilon, private.delta)
            except ValueError as error:
                raise InputError(f"mechanism.vocabulary.private: {error}") from None
            return cls(spec, None, selection, None, tokenizer)
        assert spec.vocabulary.public is not None
        public = FileSource.resolve("mechanism.vocabulary.public", spec.vocabulary.public)
        require_rule(public, tokenizer)
        return cls(spec, public, None, len(load(public, tokenizer)), tokenizer)

    @property
    def before(self) -> Fraction:
        """Return the epsilon that the vocabulary costs every user."""
        return self.selection.epsilon if self.selection else Fraction(0)

    def concentrated(self, stage: Concentrated) -> Concentrated:
        """Return the cost of the vocabulary and of a stage after it, under a filter."""
        return stage + self.selection.concentrated if self.selection else stage

    @property
    def delta(self) -> Fraction:
        """Return the delta that is left after the vocabulary."""
        return self.spec.delta - (self.selection.delta if self.selection else 0)

    @property
    def users(self) -> BoundedUsers:
        """Return how users are identified and bounded."""
        return self.named_users.bounded(self.spec.tokens)

    @property
    def shards(self) -> int:
        """Return the number of parts that users are divided into, from public figures alone."""
        return shards_for(self.spec.users, self.spec.tokens)

    @property
    def artefacts(self) -> Sequence[card.UsedArtefact]:
        """Return the vocabulary, if it is public."""
        return [statements.public_artefact("vocabulary", self.public)] if self.public else []

    def gathered(
        self, pipeline: beam.Pipeline, job: Job
    ) -> tuple[beam.pvalue.AsSingleton, dict[str, beam.PCollection]]:
        """Build the vocabulary and the outputs of `GatherUsers`."""
        splits = splits_of(pipeline, job)
        if self.selection is None:
            listed = pipeline | "public vocabulary" >> beam.Create([self.public])
            vocabulary, read = listed | "load" >> beam.Map(load, self.tokenizer), []
        else:
            selected = splits | "vocabulary" >> SelectUserVocabulary(
                job.corpus, self.users, self.selection, job.key, self.shards, self.tokenizer
            )
            vocabulary, read = selected["vocabulary"], [selected[TALLIES]]
        words = beam.pvalue.AsSingleton(vocabulary)
        gathered = splits | "users" >> GatherUsers(
            job.corpus, self.users, words, job.key, job.rejects
        )
        refuse_repeated(gathered[TAG], job)
        tallies = (gathered[TALLIES], *read) | "tallies" >> beam.Flatten()
        return words, {**gathered, TALLIES: tallies}

    def write(
        self,
        pipeline: beam.Pipeline,
        job: Job,
        words: beam.pvalue.AsSingleton,
        gathered: Mapping[str, beam.PCollection],
        files: beam.PCollection[Written],
    ) -> None:
        """Write the vocabulary, and the list of it and of the files for `finish`."""
        once = pipeline | "once" >> beam.Create([None])
        table = once | "write vocabulary" >> beam.ParDo(WriteTables(job), words)
        (files, gathered[TALLIES], table) | "run files" >> WriteRunFiles(job.staging, job.key)

    def spendings(self, stage: str, spent: Mapping[str, Fraction]) -> list[Spending[UserPrivacy]]:
        """Return the cost of the vocabulary, and the cost of a stage to each group's users."""
        before = [Spending("vocabulary", self.selection.guarantee)] if self.selection else []
        return [*before, Spending(stage, self.promise(spent))]

    @property
    def not_protected(self) -> list[str]:
        """Return what a reader may learn."""
        budgets = self.spec.budgets
        return embedding_limits(None if budgets is None else bool(budgets.epsilon))


def versions_of(*packages: str) -> str:
    """Return the installed versions of these packages."""
    return ", ".join(f"{name} {version(name)}" for name in packages)


def words_in(files: Sequence[Written], key: ReleaseKey) -> list[str]:
    """Read the words of the vocabulary that the pipeline wrote."""
    (listed,) = (file for file in files if file.path == layout.VOCABULARY)
    words: list[str] = staged_table(listed, key)["term"].to_pylist()
    return words


def staged_table(file: Written, key: ReleaseKey) -> pa.Table:
    """Read the table of a staged Parquet file."""
    return table_in(b"".join(staged_content(file, key)))
