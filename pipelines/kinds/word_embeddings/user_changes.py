"""Made-up users of word embeddings: what they change in a kind's own job, before any noise."""

from __future__ import annotations

import string
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import numpy.typing as npt

from quietcorpus.mechanisms.accounting.privacy_loss import Group
from quietcorpus.mechanisms.keystream import Keystream, ReleaseKey
from quietcorpus.mechanisms.users.clipped_sum import STEPS, ClippedSum
from quietcorpus.mechanisms.users.sampled_users import Texts
from quietcorpus.mechanisms.users.skip_gram import Rows, Vectors
from quietcorpus.mechanisms.users.user_training import Sums, TrainingState
from quietcorpus.mechanisms.users.user_vocabulary import UserVocabulary
from quietcorpus.transforms.artefacts.files import FileSource
from quietcorpus.transforms.run_files import staged_table
from quietcorpus.transforms.shards import Written, staged_content
from quietcorpus.transforms.users import cooccurrence
from quietcorpus.transforms.users import shards as training_shards

from ...audit.built import TEXT, FixedKey, Found, Row, all_of, built, heard, silent
from ...audit.users import Change, Document, Shape, UserChanges
from ...jobs.job import Job
from .methods import CountedEmbeddingsKind, TrainedEmbeddingsKind
from .training import STAGE, sums_of
from .user_corpus import UserCorpus, words_in

_RUN = "audit"
_FEW_WORDS = 3 << 24  # of all users of a spec together: they are divided into three shards
_MOST_WORDS = 2_000
_LOUD = 1_000.0
"""The size of a model, over the clipping norm, at which every user's update is longer than that."""
_CASE, _PLACE = 3, 5  # letters of a word: those of its case, and its own

Corpora = Sequence[Sequence[Sequence[Row]]]
_EMPTY: Sequence[Document] = ({TEXT: ""}, {TEXT: "  "})


class _SilentSum(ClippedSum):
    def release(
        self, sums: npt.NDArray[np.int64], stream: Keystream, addresses: Any
    ) -> npt.NDArray[np.int64]:
        return sums


@dataclass(frozen=True)
class _AllWords(UserVocabulary):
    heard: str = ""

    def select(
        self, terms: Sequence[bytes], weights: Sequence[int], stream: Keystream
    ) -> npt.NDArray[np.bool_]:
        return all_of(self.heard, terms, weights)


def of_counts(kind: CountedEmbeddingsKind) -> UserChanges:
    """Return what users change in the counts of pairs of words."""

    def run(corpora: Corpora) -> list[list[Change]]:
        with _listed(kind.corpus, corpora) as corpus:
            norms = replace(kind.norms, mechanism=silent(kind.norms.mechanism, _SilentSum))
            own = replace(kind, corpus=corpus, norms=norms)
            found = list(_built([own] * len(corpora), corpus, corpora, _counts))
        return [
            [_cells_of(case, words, counts) for case in range(len(corpora[0]))]
            for words, counts in found
        ]

    most = tuple(kind.norms.most.values())
    return UserChanges(kind.corpus.users, most, _few_words(), run, without_part=_EMPTY)


def of_updates(kind: TrainedEmbeddingsKind) -> UserChanges:
    """Return what users change in the sums of a training step, all of them taking part."""
    groups = [_always(group) for group in kind.schedule.groups]

    def run(corpora: Corpora) -> list[list[Change]]:
        with _listed(kind.corpus, corpora) as corpus:
            own = replace(kind, corpus=corpus)
            found = list(_built([own] * len(corpora), corpus, corpora, _texts))
        key = ReleaseKey.fresh()
        return [
            [_update_of(kind, groups, case, words, texts, key) for case in range(len(corpora[0]))]
            for words, texts in found
        ]

    most = [STEPS if group.rate and group.steps else 0 for group in kind.schedule.groups]
    return UserChanges(kind.corpus.users, most, _few_words(), run, without_part=_EMPTY)


def of_weights(corpus: UserCorpus, selection: UserVocabulary) -> UserChanges:
    """Return what users change in the weights of words that a vocabulary is chosen by."""
    count = min(selection.words, _MOST_WORDS)
    each = 1 + 2 * count // 6
    many = [_text(range(own * each, (own + 1) * each)) for own in range(6)]

    def run(corpora: Corpora) -> list[list[Change]]:
        names = [f"{_RUN} {number}" for number in range(len(corpora))]
        own = [
            _Choosing(replace(corpus, selection=silent(selection, partial(_AllWords, heard=name))))
            for name in names
        ]
        for _ in _built(own, corpus, corpora, lambda *_: None):
            pass
        sums = [heard(name) for name in names]
        words = [_words_by_case(rows) for rows in corpora]
        every = [sorted(set().union(*own)) for own in zip(*words, strict=True)]
        return [
            [np.array([own.get(word.encode(), 0) for word in listed], np.int64) for listed in every]
            for own in sums
        ]

    shapes = [Shape([[_text([0])]]), Shape([[_text([0, 1])] * 6]), Shape([many])]
    most = [STEPS] * len(corpus.users.groups)
    return UserChanges(corpus.users, most, shapes, run, without_part=_EMPTY)


@dataclass(frozen=True)
class _Choosing:
    """The part of a job that chooses the vocabulary and gathers the users, without what follows."""

    corpus: UserCorpus

    def build(self, pipeline: beam.Pipeline, job: Job) -> None:
        words, gathered = self.corpus.gathered(pipeline, job)
        files = pipeline | "no files" >> beam.Create([])
        self.corpus.write(pipeline, job, words, gathered, files)


def _always(group: Group) -> Group:
    """Return a group whose users take part in the first step, if they ever do."""
    return replace(group, rate=Fraction(1)) if group.rate and group.steps else group


def _few_words() -> list[Shape]:
    mixed = [_text(own) for own in ([0, 1, 2], [3, 4, 5, 0], [2, 3, 1], [5, 0], [4, 4, 1], [1, 0])]
    return [Shape([[_text([0, 1])]]), Shape([[_text([0, 1])] * 6]), Shape([mixed])]


def _text(words: Sequence[int]) -> Document:
    """Return a document of words by their numbers; each case has others of the same numbers."""
    return {TEXT: " ".join(map(str, words))}


def _word(case: int, number: int) -> str:
    return _letters(case, _CASE) + _letters(number, _PLACE)


def _letters(number: int, count: int) -> str:
    letters = string.ascii_lowercase
    return "".join(letters[number // 26**place % 26] for place in range(count))


def _words_by_case(cases: Sequence[Sequence[Row]]) -> list[set[str]]:
    return [
        {_word(case, int(one)) for row in rows for one in (row[TEXT] or "").split()}
        for case, rows in enumerate(cases)
    ]


def _in_words(cases: Sequence[Sequence[Row]]) -> list[Row]:
    """Return the documents of all cases in words."""
    return [
        {**row, TEXT: " ".join(_word(case, int(one)) for one in (row[TEXT] or "").split())}
        for case, rows in enumerate(cases)
        for row in rows
    ]


@contextmanager
def _listed(corpus: UserCorpus, corpora: Corpora) -> Iterator[UserCorpus]:
    """Yield the same users with a public list of all words of some corpora."""
    words = sorted(set().union(*(own for cases in corpora for own in _words_by_case(cases))))
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/words.txt"
        Path(path).write_text("\n".join(words), "utf-8")
        public = FileSource.resolve("mechanism.vocabulary.public", path)
        yield replace(corpus, public=public, selection=None, size=len(words))


def _built(
    kinds: Sequence[Any],
    corpus: UserCorpus,
    corpora: Corpora,
    read: Callable[[Sequence[Written], ReleaseKey], Found],
) -> Iterator[Found]:
    few = max(1, _FEW_WORDS // corpus.spec.tokens)
    spec = corpus.spec.model_copy(update={"users": min(corpus.spec.users, few)})
    own = [replace(kind, corpus=replace(kind.corpus, spec=spec)) for kind in kinds]
    return built(own, spec, [_in_words(cases) for cases in corpora], read)


def _counts(files: Sequence[Written], key: ReleaseKey) -> tuple[list[str], npt.NDArray[np.int64]]:
    blocks = [file for file in files if file.path.startswith(f"{cooccurrence.FOLDER}/")]
    counts = [staged_table(file, key)["count"].to_numpy() for file in blocks]
    return words_in(files, key), np.concatenate(counts)


def _texts(files: Sequence[Written], key: ReleaseKey) -> tuple[list[str], Texts]:
    shards = [file for file in files if file.path.startswith(f"{training_shards.FOLDER}/")]
    content = [b"".join(staged_content(file, key)) for file in shards]
    return words_in(files, key), training_shards.read_shards(content)


def _cells_of(case: int, words: Sequence[str], counts: npt.NDArray[np.int64]) -> Change:
    """Return the counts of all pairs with a word of a case."""
    own = np.array([word.startswith(_letters(case, _CASE)) for word in words])
    low, high = np.triu_indices(len(words))
    cells: Change = counts[own[low] | own[high]]
    return cells


def _update_of(
    kind: TrainedEmbeddingsKind,
    groups: Sequence[Group],
    case: int,
    words: Sequence[str],
    texts: Texts,
    key: ReleaseKey,
) -> Change:
    """Return what the sums of a step lose without the users of a case."""
    own = {n for n, word in enumerate(words) if word.startswith(_letters(case, _CASE))}
    count = len(texts)
    parts = [texts.part(number, count) for number in range(count)]
    others = [part for part in parts if not own.intersection(part.words.tolist())]
    without = Texts.joined([training_shards.read_shards([]), *others])
    training, size = kind.training, len(words)
    start = TrainingState.initial(size, training.settings.dimensions)
    loud = np.float32(_LOUD * training.settings.clip)
    model = Vectors(loud * start.model.words, loud * start.model.contexts)
    state = replace(start, model=model)
    run = key.stage("training run", 1).digest(training=training.stage_parameters)
    sums = []
    for some in (texts, without):
        with sums_of(some, groups, training.settings, FixedKey(key), run, 1) as summed:
            met: list[Change] = []
            next(training.run(state, 1, _noted(summed, met), key.stage(STAGE, 1, run=run)))
            sums += met
    change: Change = (sums[0] - sums[1]).ravel()
    return change


def _noted(sums: Sums, met: list[Change]) -> Sums:
    """Return the same sums of a step, which are also put on a list."""

    def noted(step: int, model: Vectors, negatives: Rows) -> Change:
        met.append(sums(step, model, negatives))
        return met[-1]

    return noted
