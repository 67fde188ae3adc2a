"""Releases of made-up documents of sentences, for audits, and what they repeat.

Everything that draws is the release's: its privatizer, which splits texts, clips, projects, sums,
addresses, draws and writes rows. A table of made-up sentences stands in for its encoder.
"""

from __future__ import annotations

import itertools
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from quietcorpus.evaluation.audits.findings import Exact
from quietcorpus.indexes.documents.candidates import Candidates
from quietcorpus.mechanisms.keystream import KEY_BYTES, ReleaseKey
from quietcorpus.transforms.privatizers.sentences import (
    CandidateDraw,
    Embeddings,
    NoisySum,
    SentencePrivatizer,
    SentencesParameters,
)
from quietcorpus.transforms.reading.documents import Documents

from ...audit.inputs import SOURCE, made_up_words

SENTENCES = 4
"""The number of sentences of a made-up document, at most."""
PAIRS = 32
"""The number of pairs of made-up documents that differ in a sentence."""
_LONGEST, _OF_LONG = 24, 8  # sentences of one pair in `_OF_LONG`
_CELLS = 1 << 22  # numbers of inputs that are held at a time
_FAR = 100.0  # by what sentences are scaled, so that they lie beyond every public body
_PLACES = 512  # of each document, to see whether draws repeat
_CHILDREN, _KEYS = 3, 8
_BETWEEN = "\n\n"  # ends a sentence in every language


class Table:
    """An encoder of made-up sentences, each a word, whose embeddings are given.

    Attributes:
        words: the sentences, in the order of their embeddings.
        asked: how many sentences were encoded.
    """

    def __init__(self, embeddings: Embeddings) -> None:
        self.words = list(itertools.islice(made_up_words(), len(embeddings)))
        self.asked = 0
        self._rows = {word: row for row, word in enumerate(self.words)}
        self._embeddings = embeddings

    def encode(self, sentences: Sequence[str]) -> Embeddings:
        """Look the embeddings of made-up sentences up."""
        self.asked += len(sentences)
        found: Embeddings = self._embeddings[[self._rows[sentence] for sentence in sentences]]
        return found


@dataclass(frozen=True, eq=False)
class Held:
    """Candidates, or a table of made-up sentences, in the place of the artefact of a release."""

    value: Any
    digest: str

    def open(self) -> Any:
        """Return what is held."""
        return self.value


@dataclass(frozen=True, eq=False)
class Releases:
    """The releases of documents of made-up sentences, under fresh keys.

    Attributes:
        parameters: the release's.
        candidates: the release's.
        embeddings: of the made-up sentences, float32 (n, D).
        documents: the numbers of each document's sentences.
    """

    parameters: SentencesParameters
    candidates: Candidates
    embeddings: Embeddings
    documents: tuple[tuple[int, ...], ...]

    @classmethod
    def of_public(cls, parameters: SentencesParameters, candidates: Candidates) -> Releases:
        """Make documents up, most of them of 1 to `SENTENCES` sentences, which come in pairs.

        Those of a pair differ in one sentence, in every place by turns: another public one, its
        reflection in the centre, or that reflection far beyond.
        """
        generator = np.random.default_rng(0)
        own, centre = candidates.embeddings, candidates.centre
        most = min(SENTENCES, parameters.most_sentences)
        longest = min(_LONGEST, parameters.most_sentences)
        sentences: list[npt.NDArray[np.float64]] = []
        documents = []
        for pair in range(PAIRS):
            length = most - pair % most if pair % _OF_LONG else longest
            drawn = own[generator.integers(len(own), size=length)].astype(np.float64)
            place = pair // most % length
            other = own[generator.integers(len(own))] - centre
            if pair % 3:
                other = centre - drawn[place]
            if pair % 3 == 2:
                other, drawn[place] = other * _FAR, centre - other * _FAR
            first = len(sentences)
            sentences += [*drawn, centre + other]
            one = list(range(first, first + length))
            two = one.copy()
            two[place] = first + length
            documents += [tuple(one), tuple(two)]
        return cls(parameters, candidates, np.array(sentences, dtype=np.float32), tuple(documents))

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """Return the number of each document's sentences, int64 (n,)."""
        return np.array([len(own) for own in self.documents], dtype=np.int64)

    @property
    def texts(self) -> tuple[str, ...]:
        """Return the documents' texts."""
        words = Table(self.embeddings).words
        return tuple(_BETWEEN.join(words[number] for number in own) for own in self.documents)

    def privatizer(self, key: ReleaseKey | None = None) -> SentencePrivatizer:
        """Return the release's privatizer, under a fresh key unless one is given."""
        own = self.parameters
        held: dict[str, Any] = {
            "candidates": Held(self.candidates, own.candidates.digest),
            "encoder": Held(Table(self.embeddings), own.encoder.digest),
        }
        return replace(own, **held).privatizer(key or ReleaseKey.fresh())

    def inputs(
        self, mechanism: CandidateDraw | NoisySum, chosen: Sequence[int]
    ) -> npt.NDArray[np.int32]:
        """Compute the mechanism's inputs of the documents of these numbers, in one batch."""
        rows = [number for own in chosen for number in self.documents[own]]
        offsets = np.cumsum([0, *(len(self.documents[own]) for own in chosen)], dtype=np.int64)
        return mechanism.inputs(self.embeddings[rows], offsets)

    def change(self, order: float) -> float:
        """Compute the largest change of a mechanism's inputs by a sentence, in the L`order` norm.

        Every second document of a batch has one of its sentences replaced. What changes in the
        others counts as an infinite change.
        """
        mechanism = self.privatizer().mechanism
        ones = range(0, 2 * PAIRS, 2)
        before = self.inputs(mechanism, ones).astype(np.int64)
        worst = 0.0
        for odd in (False, True):
            changed = [own + (own // 2 % 2 == odd) for own in ones]
            after = self.inputs(mechanism, changed).astype(np.int64)
            moved = np.linalg.norm((after - before).astype(np.float64), ord=order, axis=1)
            same = np.array(changed) == np.array(ones)
            worst = max(worst, float(moved.max()), np.inf if moved[same].any() else 0.0)
        return worst


def of_streams(releases: Releases) -> list[Exact]:
    """Return audits of what draws repeat: addresses, draws of one key, and keys."""
    return [
        Exact(
            "documents: addresses of draws",
            0.0,
            "The figure is how many released ids repeat, each of which is drawn at a document's "
            "address: of different documents at one place, of equal ones at many, and under "
            "another key.",
            lambda: float(repeated_ids(releases)),
        ),
        Exact(
            "documents: draws of one key",
            0.0,
            "The figure is how many rows differ of documents that were released twice under one "
            "key, one by one and in another order the second time.",
            lambda: float(changed_rows(releases)),
        ),
        Exact(
            "keys drawn",
            0.0,
            f"The figure is how many fresh keys repeat: {_KEYS} of this process, and as many of "
            f"each of {_CHILDREN} children that it forked.",
            lambda: float(repeated_keys()),
        ),
    ]


def repeated_ids(releases: Releases) -> int:
    """Count released ids that an earlier row has, of all that must differ."""
    privatizer = releases.privatizer()
    inputs = releases.inputs(privatizer.mechanism, range(len(releases.documents)))
    _, kept = np.unique(inputs, axis=0, return_index=True)
    texts = [releases.texts[own] for own in kept.tolist()]
    ids: list[str] = []
    for own in (privatizer, releases.privatizer()):
        for place in (0, 1 << 33):  # each document at the same place
            for text in texts:
                ids += release_texts(own, [text], place)["id"].to_pylist()
        alike = [texts[0]] * _PLACES
        for source in (SOURCE, "other"):
            rows = own.release(made_up(alike, 2, source)).rows
            ids += rows["id"].to_pylist()
    return len(ids) - len(set(ids))


def changed_rows(releases: Releases) -> int:
    """Count rows that are not the same when their documents are released again."""
    key = ReleaseKey.fresh()
    texts = [*releases.texts, ""]
    first = releases.privatizer(key).release(made_up(texts, 0)).rows
    again = releases.privatizer(key)
    backwards = [
        again.release(made_up([texts[row]], row)).rows for row in reversed(range(len(texts)))
    ]
    second = pa.concat_tables(backwards[::-1])
    return sum(a != b for a, b in zip(first.to_pylist(), second.to_pylist(), strict=True))


def repeated_keys() -> int:
    """Count keys that were drawn before, here and in children that this process forked."""
    drawn = [ReleaseKey.fresh().secret for _ in range(_KEYS)]
    if hasattr(os, "fork"):
        for _ in range(_CHILDREN):
            raw = _in_child()
            drawn += [raw[at : at + KEY_BYTES] for at in range(0, len(raw), KEY_BYTES)]
    return len(drawn) - len(set(drawn))


def release_texts(privatizer: SentencePrivatizer, texts: Sequence[str], first: int = 0) -> pa.Table:
    """Release texts in one batch, from the place `first` of a corpus on."""
    return privatizer.release(made_up(texts, first)).rows


def draws_of(privatizer: SentencePrivatizer, texts: tuple[str, ...], count: int) -> pa.Table:
    """Release these texts by turns, `count` rows in all."""
    size = privatizer.documents_at_once  # as in a release
    every = itertools.cycle(texts)
    return pa.concat_tables(
        release_texts(privatizer, list(itertools.islice(every, min(size, count - start))), start)
        for start in range(0, count, size)
    )


def drawn_for(
    privatizer: SentencePrivatizer, inputs: npt.NDArray[np.int32], count: int
) -> pa.Table:
    """Release `count` documents that have these inputs of the mechanism, (n, m), by turns."""
    step = max(1, _CELLS // inputs.shape[1])
    parts = []
    for start in range(0, count, step):
        places = np.arange(start, min(count, start + step))
        rows = np.ascontiguousarray(inputs[places % len(inputs)])
        parts.append(privatizer.drawn(made_up([""] * len(rows), start), rows))
    return pa.concat_tables(parts)


def vectors(rows: pa.Table, name: str = "embedding") -> Embeddings:
    """Return a column of released vectors, float32 (n, D)."""
    column = rows[name].combine_chunks()
    found: Embeddings = column.flatten().to_numpy().reshape(len(rows), -1)
    return found


def made_up(texts: Sequence[str], first: int, source: str = SOURCE) -> Documents:
    """Return texts as documents of a file, from the place `first` on."""
    rows = np.arange(first, first + len(texts), dtype=np.int64)
    return Documents(source, rows, pa.array(list(texts), pa.large_string()), pa.table({}))


def _in_child() -> bytes:
    """Return the secrets of keys that a forked child drew; it does nothing else."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():  # of threads, none of which the child needs
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            os.write(writer, b"".join(ReleaseKey.fresh().secret for _ in range(_KEYS)))
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        found = pipe.read()
    os.waitpid(child, 0)
    return found
