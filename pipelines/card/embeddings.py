"""The mechanism of `kind: word-embeddings` on the card, and the files of such a release.

The files hold the same vectors in several forms, and an index that states their cost.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from quietcorpus.indexes.folder import MANIFEST
from quietcorpus.indexes.vectors import VectorsError, read
from quietcorpus.indexes.word_index_manifest import FILES
from quietcorpus.mechanisms.guarantees import Spending, UserPrivacy
from quietcorpus.pipelines.card.mechanism import FileFormat, Mechanism, Product, Promise
from quietcorpus.pipelines.card.model import Card, UsedArtefact
from quietcorpus.pipelines.card.noise import Course, check_cost, courses_of_norms
from quietcorpus.pipelines.card.parameters import Part, UserParameters
from quietcorpus.pipelines.card.statements import NUMBERS, WHETHER, stated
from quietcorpus.pipelines.card.users import OF_NAMES, are_named, budget_limits
from quietcorpus.pipelines.card.vocabulary import VOCABULARY_FORMAT, check_vocabulary, misfit_of
from quietcorpus.pipelines.card.weakness import Weakness, of_noise, of_users
from quietcorpus.pipelines.storage import files as storage
from quietcorpus.pipelines.storage import layout
from quietcorpus.pipelines.storage.layout import BINARY, INDEX, TABLE, TEXT
from quietcorpus.transforms.artefacts.word_index import IndexSource
from quietcorpus.transforms.errors import InputError

_FILES = {
    TABLE: FileFormat("`word`, `vector`: the word embeddings", ("word", "vector")),
    layout.VOCABULARY: VOCABULARY_FORMAT,
    TEXT: FileFormat("the same in word2vec's text format, which gensim opens"),
    BINARY: FileFormat("the same in word2vec's binary format"),
    **dict.fromkeys(
        (f"{INDEX}/{name}" for name in (MANIFEST, *FILES)),
        FileFormat(
            "the same as a word index for releases of `kind: words`; it is private, and what it "
            "cost is added to theirs"
        ),
    ),
}
LEAST_ON_NOISE = {"sgd": 5_000, "cooccurrence": 1_000}
"""Users needed per standard deviation of the noise: at 3,968 and 715, vectors were at chance."""
_PROOFS = {
    "sgd": ("user_training", "sampled_users", "gaussian", "accounting"),
    "cooccurrence": ("cooccurrence", "clipped_sum", "gaussian"),
}


class TrainedGroup(Part):
    """The training of the users of one group."""

    name: str
    budget_left_for_training: float
    sampling_rate: str
    last_step: int


class WordEmbeddingsMechanism(Mechanism):
    """A release of word embeddings."""

    kind: Literal["word-embeddings"]
    method: Literal["sgd", "cooccurrence"]
    user: str
    users: int
    epsilon: float | None = None
    budgets: dict[str, Any] | None = None
    delta: float
    vocabulary: dict[str, Any]
    tokens: int
    dimensions: int
    window: int
    few_users: str | None = None
    training: dict[str, Any] | None = None
    tokenizer: str
    vocabulary_size: int
    noise_multiplier: str
    norms: dict[str, int] | None = None
    steps_taken: int | None = None
    lot: int | None = None
    software: str
    groups: list[TrainedGroup] | None = None

    @property
    def promise(self) -> Promise:
        """Return the form of user-level privacy."""
        return Promise(UserParameters)

    @property
    def start(self) -> str | None:
        """Return the file of public vectors that training started from; None if there was none."""
        given = (self.training or {}).get("start")
        return given.get("public") if isinstance(given, dict) else None

    @property
    def notes(self) -> list[str]:
        """Return what the README says of a start from public vectors."""
        if self.start is None:
            return []
        return [
            f"Training started from the public vectors of `{self.start}` (artefact `start`) for "
            "the words that they have, and from random numbers for all others. It cost nothing: "
            "whoever made the release declared these vectors public, and public vectors tell "
            "nothing of a user. What two released vectors have in common may come from others' "
            "texts, of which these vectors were made, and not from the corpus."
        ]

    @property
    def product(self) -> Product:
        """Return what sort of thing the release is."""
        return "model"

    @property
    def proofs(self) -> tuple[str, ...]:
        """Return the modules with the proofs of its noise."""
        return _PROOFS[self.method]

    def limits(
        self, spendings: Sequence[Spending[Any]], artefacts: Sequence[UsedArtefact]
    ) -> list[str]:
        """Return the lines on what vectors do not hide."""
        return embedding_limits(are_named(self.budgets))

    def weaknesses(self, card: Card) -> tuple[Sequence[Weakness], Sequence[Weakness]]:
        """Return those of delta before, and those of the noise after."""
        total, noise = card.budget.total.guarantee, Fraction(self.noise_multiplier)
        assert isinstance(total, UserPrivacy)
        on_noise = (
            float(self.users / noise)
            if self.method == "cooccurrence"
            else float(Fraction(self.lot or 0) / noise) * math.sqrt(self.steps_taken or 0)
        )
        least = LEAST_ON_NOISE[self.method]
        return of_users(total.delta, self.users), of_noise(self.users, on_noise, least)

    @property
    def files(self) -> Mapping[str, FileFormat]:
        """Return the formats of the vectors, in four forms, and of the vocabulary."""
        vectors = pa.list_(pa.float32(), self.dimensions)
        return _FILES | {TABLE: _FILES[TABLE]._replace(types=(pa.string(), vectors))}

    def misfit(self, name: str, rows: pa.Table, tables: Mapping[str, pa.Table]) -> str | None:
        """Return what in the vocabulary is not as it is written."""
        if name != layout.VOCABULARY:
            return None
        return misfit_of(rows, self.vocabulary, self.tokenizer, weighted=False)

    @property
    def required(self) -> tuple[str, ...]:
        """Return the paths of all files."""
        return tuple(_FILES)


def embedding_limits(named: bool | None) -> list[str]:
    """Return the lines on what vectors do not hide; `named` is that of `budget_limits`."""
    return [
        f"{NUMBERS}, which this card states",
        *OF_NAMES,
        f"{WHETHER}: a corpus without a word of the vocabulary, with too many unreadable records, "
        "or with an identifier twice, makes none",
        "anything from whoever runs the release and sees the text",
        *budget_limits(named),
    ]


def check(output: str, card: Card) -> None:
    """Check that all files agree, what the noise costs, and that the index states the cost.

    Raises InputError.
    """
    mechanism = card.mechanism
    assert isinstance(mechanism, WordEmbeddingsMechanism)
    check_vocabulary(f"{output}/{layout.CARD}", mechanism.vocabulary, card.budget.stages[:-1])
    stage = card.budget.stages[-1].parameters
    assert isinstance(stage, UserParameters)
    check_cost(f"{output}/{layout.CARD}", stage, _courses(mechanism))
    _check_start(f"{output}/{layout.CARD}", mechanism.start, card.artefacts)
    _check_numbers(f"{output}/{layout.CARD}", mechanism, card)
    _check_vectors(output, card)


def _check_numbers(uri: str, mechanism: WordEmbeddingsMechanism, card: Card) -> None:
    """Check that the mechanism's numbers are those of the budget and of the files."""
    total, noisy = card.budget.total, {"sgd": "training", "cooccurrence": "cooccurrences"}
    assert isinstance(total, UserParameters)
    if card.budget.stages[-1].stage != noisy[mechanism.method]:
        raise InputError(f"{uri}: budget: its stages are not the mechanism's")
    most = total.epsilon if mechanism.epsilon is None else mechanism.epsilon
    if mechanism.delta != total.delta or most < total.epsilon:
        raise InputError(f"{uri}: mechanism: epsilon or delta is not the budget's")
    if {file.rows for file in card.files} != {mechanism.vocabulary_size}:
        raise InputError(f"{uri}: mechanism: vocabulary_size is not the number of words")


def _check_start(uri: str, start: str | None, artefacts: Sequence[UsedArtefact]) -> None:
    """Raise InputError unless the artefact `start` is the file of the start, and is public."""
    found = [(one.uri, one.provenance) for one in artefacts if one.name == "start"]
    if found != ([] if start is None else [(start, "public")]):
        raise InputError(
            f"{uri}: artefacts: not the public vectors that training is said to have started from"
        )


def _courses(mechanism: WordEmbeddingsMechanism) -> Iterator[Course]:
    """Yield the courses of the users of each group."""
    for group in mechanism.groups or ():
        noise = Fraction(mechanism.noise_multiplier)
        yield group.name, Fraction(group.sampling_rate), noise, group.last_step
    yield from courses_of_norms(mechanism.noise_multiplier, mechanism.norms or {})


def _check_vectors(output: str, card: Card) -> None:
    """Raise InputError unless all files hold the same vectors, and the index states its cost."""
    index = IndexSource.resolve("index", f"{output}/{INDEX}").open()
    table, terms = (storage.read_table(f"{output}/{name}") for name in (TABLE, layout.VOCABULARY))
    words = table["word"].to_pylist()
    values = np.array(table["vector"].to_pylist(), dtype=np.float32)
    found: list[tuple[str, list[str], Any]] = [
        (INDEX, index.vocabulary.terms.to_pylist(), index.vectors),
        (layout.VOCABULARY, terms["term"].to_pylist(), values),
    ]
    for path in (TEXT, BINARY):
        content = storage.read_bytes(f"{output}/{path}")
        try:
            vectors = read(path, {path: io.BytesIO(content)}.__getitem__)
        except VectorsError as error:
            raise InputError(f"{output}/{path}: {error}") from None
        found.append((path, vectors.words, vectors.values))
    for path, own, vectors in found:
        if own != words or not np.array_equal(vectors, values):
            raise InputError(f"{output}/{path}: not the words and vectors of {TABLE}")
    if (index.manifest.provenance, index.manifest.guarantee) != ("private", stated(card.guarantee)):
        raise InputError(f"{output}/{INDEX}: does not say what it cost as {layout.CARD} does")
