"""Canaries of sentence embeddings: documents of one sentence, or of another."""

from __future__ import annotations

import numpy as np

from quietcorpus.mechanisms.guarantees import SentencePrivacy
from quietcorpus.pipelines.canaries.game import (
    Coins,
    Document,
    Game,
    Scores,
    by_difference,
    by_outcome,
    rows_of,
)
from quietcorpus.pipelines.card.loading import LoadedRelease
from quietcorpus.pipelines.kinds.kind import Kind
from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.reading.documents import Corpus

_SENTENCES = (
    "The court found the defendant guilty of fraud.",
    "We had wonderful pasta at the little restaurant by the sea.",
)


def game(kind: Kind, canaries: int, _: Corpus) -> Game:
    """Return documents of one of two sentences; raises InputError for words' privacy."""
    cost = kind.cost
    if not isinstance(cost, SentencePrivacy):
        raise InputError(
            "canaries: not for the mechanism madlib of sentence-embeddings; test a release of its "
            "words, kind: words"
        )

    def score(loaded: LoadedRelease, known: Coins) -> Scores:
        rows = rows_of(loaded, canaries)
        if "candidate" in rows.column_names:
            return by_outcome(rows["candidate"].to_pylist(), known)
        embeddings = rows["embedding"].combine_chunks().flatten().to_numpy()
        return by_difference(embeddings.reshape(canaries, -1).astype(np.float64), known)

    return Game(
        [([Document(_SENTENCES[0], {})], [Document(_SENTENCES[1], {})])] * canaries,
        score,
        float(cost.epsilon),
        0.0,
        "A canary is a document of one of two sentences. The coins of the first half are known, "
        "and show what each becomes.",
        linked=True,
        known=canaries // 2,
    )
