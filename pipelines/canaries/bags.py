"""Canaries of bags of words: documents that repeat a word, and repeat it N times more or not."""

from __future__ import annotations

import math

import numpy as np

from quietcorpus.transforms.reading.documents import Corpus

from ..card.loading import LoadedRelease
from ..kinds.bags import BagOfWordsKind
from .game import Coins, Document, Game, Scores, rows_of
from .words_of_corpus import words_for

_WORDS = 100
"""The number of words among canaries; of a private vocabulary, they are the likeliest."""
_CLEAR = 4
"""Precisions over epsilon: how far counts are from zero, at which noise would be clipped."""


def game(kind: BagOfWordsKind, canaries: int, corpus: Corpus) -> Game:
    """Return documents of one word, with or without `precision` more of it."""
    step, spec = kind.vocabulary, kind.spec
    words = words_for(step.public, step.tokenizer, corpus, _WORDS)[:_WORDS]
    own = [words[number % len(words)] for number in range(canaries)]
    base = math.ceil(_CLEAR * spec.precision / spec.epsilon)

    def score(loaded: LoadedRelease, _: Coins) -> Scores:
        rows, terms = rows_of(loaded, canaries), loaded.tables["vocabulary"]["term"].to_pylist()
        numbers = {term: number for number, term in enumerate(terms)}
        bins = np.arange(len(terms))
        if "compression" in loaded.tables:
            bins = loaded.tables["compression"]["bin"].to_numpy()
        counts = np.zeros(canaries)
        for place, (word, row) in enumerate(zip(own, rows.to_pylist(), strict=True)):
            if word in numbers:
                beside = bins[np.array(row["terms"], np.int64)] == bins[numbers[word]]
                counts[place] = np.array(row["counts"])[beside].sum() - base - spec.precision / 2
        return counts

    cost = kind.cost
    return Game(
        [
            (
                [Document(" ".join([word] * (base + spec.precision)), {})],
                [Document(" ".join([word] * base), {})],
            )
            for word in own
        ],
        score,
        float(cost.epsilon),
        float(cost.delta),
        f"A canary is a document that has a word {base} times, or {spec.precision} times more. Its "
        "score is the row's count of the word and of those that share its bin.",
        shows=float(spec.epsilon),
        linked=True,
    )
