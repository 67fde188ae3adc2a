"""The audit of embeddings that are made of released words: nothing else reaches the encoder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from quietcorpus.evaluation.audits.findings import Exact
from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.transforms.privatizers.embedded_words import EmbeddedWordsParameters
from quietcorpus.transforms.privatizers.sentences import Embeddings

from .sentence_documents import Held, made_up, vectors

_DOCUMENTS, _LONGEST = 64, 100  # words


class _Listening:
    """An encoder that keeps what it is asked; an embedding is how many words were asked before."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def encode(self, sentences: Sequence[str]) -> Embeddings:
        """Return float32 (n, 1), a number that no other sentence has."""
        start = len(self.asked)
        self.asked += sentences
        return np.arange(start, len(self.asked), dtype=np.float32)[:, None]


def besides_words(parameters: EmbeddedWordsParameters, known: pa.Array) -> Exact:
    """Return the audit of what is encoded, and of what becomes of it.

    `known` are words that the index knows.
    """
    return Exact(
        "documents: embeddings besides released words",
        0.0,
        "The figure is how many rows of made-up documents differ from a release of their words "
        "under the same key, in their ids or in what the encoder was given, or are not the means "
        "of what it gave.",
        lambda: float(rows_besides_words(parameters, known)),
    )


def rows_besides_words(parameters: EmbeddedWordsParameters, known: pa.Array) -> int:
    """Count rows that do not follow from the words that a release of words has under their key."""
    generator = np.random.default_rng(0)
    texts = []
    for length in generator.integers(0, _LONGEST, _DOCUMENTS):
        chosen = generator.integers(0, len(known), int(length))
        texts.append(" ".join(known.take(pa.array(chosen)).to_pylist()))
    key, encoder, most_runs = ReleaseKey.fresh(), _Listening(), parameters.most_runs
    held: dict[str, Any] = {"encoder": Held(encoder, parameters.encoder.digest)}
    rows = replace(parameters, **held).privatizer(key).release(made_up(texts, 0)).rows
    alone = parameters.words.privatizer(key).release(made_up(texts, 0)).rows
    embeddings, start, wrong = vectors(rows)[:, 0], 0, 0
    for row, text in enumerate(alone["text"].to_pylist()):
        left = text.split()
        asked = 0
        while left and asked < most_runs and start + asked < len(encoder.asked):
            run = encoder.asked[start + asked].split()
            if left[: len(run)] != run or not run:
                break
            left, asked = left[len(run) :], asked + 1
        complete = not left or asked == most_runs
        mean = np.float32(np.mean(range(start, start + asked))) if asked else np.float32(0)
        same = rows["id"][row] == alone["id"][row]
        wrong += not (complete and same and embeddings[row] == mean)
        start += asked
    return wrong + (start != len(encoder.asked))
