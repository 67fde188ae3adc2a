"""Canaries of word embeddings: users of short documents, of two words each."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from quietcorpus.mechanisms.user_training import TrainingState
from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.reading.documents import Corpus

from ..card.loading import LoadedRelease
from ..kinds.embeddings_counted import CountedEmbeddingsKind
from ..kinds.embeddings_trained import TrainedEmbeddingsKind
from ..kinds.user_level import UserLevelKind
from .game import (
    Coins,
    Document,
    Game,
    Scores,
    apart_of,
    by_turns,
    of_user,
    weaker,
)
from .words_of_corpus import words_for

_PAIRS = 40
"""Pairs of words of a user: without a bound on all of them, it weighs six times one of them."""
_REPEATED = 5
"""The times that a document has its two words: without a bound, it weighs so much more."""
_FREQUENT = 1_000  # words of a private vocabulary

Pairs = Sequence[tuple[str, str]]
Signal = Callable[[LoadedRelease], Callable[[str, str], float]]
"""Of a release, a function of two words: how much it shows that somebody wrote them together."""


def game(kind: UserLevelKind, canaries: int, corpus: Corpus) -> Game:
    """Return users who write pairs of words, each canary other pairs."""
    own = kind.corpus
    words = words_for(own.public, own.tokenizer, corpus, _FREQUENT)
    each = min(_PAIRS, len(words) // 2, own.spec.tokens // (2 * _REPEATED))
    if each < 1:
        raise InputError("canaries: they need two words, and more tokens per user; give more")
    pairs = [_pairs(words, each) for _ in range(canaries)]
    counted = isinstance(kind, CountedEmbeddingsKind)
    signal = _of_counts if counted else _of_training
    parts = _parts(kind)
    groups = [group for group, part in enumerate(parts) if part]
    # Users of a small budget show little: what shows of them is guessed where it is too much.
    weights = [parts[by_turns(number, groups)] / max(parts) for number in range(canaries)]

    def score(loaded: LoadedRelease, _: Coins) -> Scores:
        shows = signal(loaded)
        found = [sum(shows(*pair) for pair in some) for some in pairs]
        scores: Scores = np.array(weights) * np.array(found)
        return scores

    def user(number: int) -> list[Document]:
        group = by_turns(number, groups)
        columns = of_user(own.named_users, f"canary {secrets.token_hex(8)} {number}", group)
        return [Document(" ".join(pair * _REPEATED), columns) for pair in pairs[number]]

    cost = kind.cost
    return Game(
        [(user(number), []) for number in range(canaries)],
        score,
        float(cost.epsilon),
        float(cost.delta),
        f"A canary is a user of {each} documents, each of two words by turns"
        f"{', with budgets by turns' if len(groups) > 1 else ''}. Its score is how far "
        "these words' vectors lie as it asks for.",
        apart_of(cost) if counted and own.public is not None else None,
        twice=own.spec.model_copy(update={"epsilon": 2 * cost.epsilon, "budgets": None}),
        weaker=weaker(canaries, groups),
    )


def _parts(kind: UserLevelKind) -> list[float]:
    """Return the part that the users of each group have in a release: their norm, or their rate."""
    if isinstance(kind, CountedEmbeddingsKind):
        return [float(most) for most in kind.norms.most.values()]
    assert isinstance(kind, TrainedEmbeddingsKind)
    return [float(group.rate) if group.steps else 0.0 for group in kind.schedule.groups]


def _pairs(words: Sequence[str], count: int) -> Pairs:
    """Draw so many pairs of different words."""
    drawn = np.random.default_rng().choice(len(words), 2 * count, replace=False)
    return [(words[one], words[other]) for one, other in drawn.reshape(-1, 2)]


def _of_counts(loaded: LoadedRelease) -> Callable[[str, str], float]:
    """Compare the two words' vectors: their product estimates their information."""
    vectors = _vectors(loaded)

    def shows(one: str, other: str) -> float:
        known = one in vectors and other in vectors
        return float(vectors[one] @ vectors[other]) if known else 0.0

    return shows


def _of_training(loaded: LoadedRelease) -> Callable[[str, str], float]:
    """Measure how far each word's vector went to where the other's context was at the start.

    The start depends on the number of words alone; to first order, that is where a user who writes
    the two together pulls it.
    """
    vectors = _vectors(loaded)
    numbers = {word: n for n, word in enumerate(loaded.tables["vocabulary"]["term"].to_pylist())}
    dimensions = len(next(iter(vectors.values())))
    start = TrainingState.initial(len(numbers), dimensions).model

    def pulled(word: str, other: str) -> float:
        moved = vectors[word] - start.words[numbers[word]]
        return float(moved @ start.contexts[numbers[other]])

    def shows(one: str, other: str) -> float:
        known = one in vectors and other in vectors
        return pulled(one, other) + pulled(other, one) if known else 0.0

    return shows


def _vectors(loaded: LoadedRelease) -> dict[str, npt.NDArray[np.float32]]:
    """Return the released vectors by word."""
    table = loaded.tables["vectors"]
    found = table["vector"].combine_chunks().flatten().to_numpy().reshape(len(table), -1)
    return dict(zip(table["word"].to_pylist(), found, strict=True))
