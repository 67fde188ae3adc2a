"""The study of word embeddings."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from evaluation.classification import out_of_fold, scores
from evaluation.embeddings import map_char, map_word, nearest, similarity
from indexes.tokenizer import tokenize
from indexes.vocabulary import Vocabulary
from pipelines import storage
from pipelines.embeddings_output import TABLE
from pipelines.engine import Engine
from pipelines.evidence.draws import Draw
from pipelines.evidence.features import counted
from pipelines.evidence.private_corpus import Sample
from pipelines.evidence.results import Observation
from pipelines.evidence.study import FOLDS, Study, classified, labelled
from pipelines.release import release
from pipelines.spec import Spec

_WORDS, _NEAREST = 1000, 10
_JUDGED = ("wordsim353.tsv", "simlex999.txt")

Vectors = npt.NDArray[np.float32]


class EmbeddingStudy(Study):
    """Vectors of the words of the release, against vectors learnt from the sample as it is.

    A redraw trains anew on the whole corpus.
    """

    def __init__(self, output: str, sample: Sample) -> None:
        self._sample = sample
        self.own = _vectors(output)
        self._words: list[str] = self.own.rows["word"].to_pylist()
        self._numbers = {word: number for number, word in enumerate(self._words)}
        vocabulary = Vocabulary(self._words)
        offsets, terms = vocabulary.look_up(tokenize(sample.documents.texts))
        self._counts = counted(offsets, terms, len(self._words))
        frequent = np.argsort(-self._counts.sum(axis=0), kind="stable")[:_WORDS]
        self._queries = frequent.astype(np.int64)
        self._texts = [terms[a:b] for a, b in zip(offsets, offsets[1:], strict=False)]
        self._gold: dict[int, Vectors] = {}
        self.notes = [
            f"Nearest words are compared for the {len(frequent):,} most frequent words of the "
            "release, with those of word2vec trained on the sample as it is (100 dimensions, "
            "window 5); the original is such a training against another one.",
            "Membership of users was not measured here: `quietcorpus audit` bounds what taking "
            "part can change.",
        ]

    def redraw(self, spec: Spec) -> Draw:
        """A release of its own, which is deleted."""
        with tempfile.TemporaryDirectory() as folder:
            output = f"{folder}/release"
            name = f"evaluation-{secrets.token_hex(8)}"  # of which nothing else is ever released
            own = {"release": name, "output": output, "checkpoints": None}
            release(spec.model_copy(update=own), Engine([], 1), lambda: None, quiet=True)
            return _vectors(output)

    def references(self, number: int) -> Iterator[Observation]:
        """Vectors of the text as it is, from another initialisation."""
        yield from self._scored(self._trained(2 * number + 1), "original", number)

    def observe(self, draw: Draw, number: int) -> Iterator[Observation]:
        """The measures of a draw."""
        own = self._numbers
        rows = {word: row for row, word in enumerate(draw.rows["word"].to_pylist())}
        found = np.stack(_lists(draw)) if rows else np.empty((0, 1), np.float32)
        vectors = np.zeros((len(own), found.shape[1]), np.float32)  # a draw may lack a word
        for word, place in own.items():
            if word in rows:
                vectors[place] = found[rows[word]]
        yield from self._scored(vectors, "release", number)

    def _scored(self, vectors: Vectors, subject: str, number: int) -> Iterator[Observation]:
        gold = nearest(self._trained(2 * number), self._queries, _NEAREST)
        found = nearest(vectors, self._queries, _NEAREST)
        yield Observation("map-word", subject, float(map_word(found, gold).mean()))
        yield Observation("map-char", subject, float(map_char(found, gold, self._words).mean()))
        known = {word: place for word, place in self._numbers.items() if vectors[place].any()}
        for name in _JUDGED:
            score, pairs = similarity(vectors, known, _judged(name))
            yield Observation(
                "word-similarity", subject, score, f"{name.split('.')[0]}, {pairs} pairs"
            )
        if self._sample.labels is not None:
            rows, classes = labelled(self._sample.labels)
            means = (self._counts @ vectors)[rows]
            predicted = out_of_fold(means, classes, FOLDS, number)
            yield from classified(scores(classes, predicted), subject)

    def _trained(self, seed: int) -> Vectors:
        """Word2vec of the sample, which is of equal seeds the same."""
        if seed not in self._gold:
            from gensim.models import Word2Vec

            texts = [[self._words[term] for term in text] for text in self._texts]
            settings = {"vector_size": 100, "window": 5, "min_count": 1, "sg": 1, "workers": 1}
            found = Word2Vec(texts, seed=seed + 1, **settings).wv
            vectors = np.zeros((len(self._words), 100), np.float32)
            for word, place in self._numbers.items():
                if word in found:
                    vectors[place] = found[word]
            self._gold[seed] = vectors
        return self._gold[seed]


def _vectors(output: str) -> Draw:
    table = pq.read_table(pa.BufferReader(storage.read_bytes(f"{output}/{TABLE}")))
    return Draw(table, placed=False, labels=None)


def _lists(draw: Draw) -> list[npt.NDArray[np.float32]]:
    column = draw.rows["vector"].combine_chunks()
    return list(column.flatten().to_numpy().reshape(len(draw.rows), -1))


def _judged(name: str) -> list[tuple[str, str, float]]:
    """Pairs of words that people have scored, as gensim carries them."""
    from gensim.test.utils import datapath

    lines = Path(datapath(name)).read_text("utf-8").splitlines()
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    return [(a.lower(), b.lower(), float(score)) for a, b, score in rows]
