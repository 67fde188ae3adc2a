"""Canaries of text that is released word by word: documents of one word, or of another."""

from __future__ import annotations

from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.reading.documents import Corpus

from ..audit.word_laws import reach_of
from ..audit.words import alone, telling_pair
from ..card.loading import LoadedRelease
from ..kinds.words import WordsKind
from .game import Coins, Document, Game, Scores, by_outcome, rows_of


def game(kind: WordsKind, canaries: int, _: Corpus) -> Game:
    """Return documents of one of two words, whose distance costs about as much as draws show."""
    spec, (terms, distances) = kind.spec, alone(kind.parameters, kind.index)
    pair = telling_pair(distances, float(kind.cost.epsilon))
    if pair is None:
        raise InputError(
            "canaries: the index has no two different words that are documents by themselves"
        )
    one, other = (terms[place].as_py() for place in pair)
    apart = float(distances[pair])
    counted = min(apart, reach_of(kind.parameters, kind.index))

    def score(loaded: LoadedRelease, known: Coins) -> Scores:
        return by_outcome(rows_of(loaded, canaries)["text"].to_pylist(), known)

    return Game(
        [([Document(one, {})], [Document(other, {})])] * canaries,
        score,
        # A little more, to cover the rounding of the distance.
        float(kind.cost.epsilon) * counted * (1 + 1e-6),
        0.0,
        f"A canary is a document of one of two words of the index that are {apart:.4g} apart. The "
        "coins of the first half are known, and show which words each becomes.",
        twice=spec.model_copy(
            update={"epsilon": 2 * kind.parameters.epsilon, "document_epsilon": None}
        ),
        linked=True,
        known=canaries // 2,
    )
