"""Canaries of histograms: documents that repeat a word of their own, or are empty."""

from __future__ import annotations

import numpy as np

from quietcorpus.transforms.reading.documents import Corpus

from ..card.loading import LoadedRelease
from ..kinds.histogram import HistogramKind
from .game import Coins, Document, Game, Scores, enough
from .words_of_corpus import counts_of, words_for


def game(kind: HistogramKind, canaries: int, corpus: Corpus) -> Game:
    """Return documents of `precision` equal words, or none; raises InputError for too many."""
    step, precision = kind.vocabulary, kind.spec.precision
    words = words_for(step.public, step.tokenizer, corpus, canaries)
    enough(canaries, len(words), "the vocabulary's words")
    words = words[:canaries]
    expected = counts_of(words, step.tokenizer, corpus) + precision / 2

    def score(loaded: LoadedRelease, _: Coins) -> Scores:
        table = loaded.tables["vocabulary"]
        weights = dict(zip(table["term"].to_pylist(), table["weight"].to_pylist(), strict=True))
        return np.array(
            [
                weights[word] - middle if word in weights else 0.0
                for word, middle in zip(words, expected, strict=True)
            ]
        )

    cost = kind.cost
    return Game(
        [([Document(" ".join([word] * precision), {})], [Document("", {})]) for word in words],
        score,
        float(cost.epsilon),
        float(cost.delta),
        f"A canary is a document that has a word {precision} times, or is empty. Its score is the "
        "word's noisy count, less that of the corpus.",
        shows=float(kind.spec.epsilon),
    )
