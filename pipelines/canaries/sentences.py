"""Canaries of sentence embeddings: documents that differ in one sentence."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import permutations, product

import numpy as np
import numpy.typing as npt

from quietcorpus.indexes.sentences import split
from quietcorpus.mechanisms.deep_candidate import DeepCandidate
from quietcorpus.mechanisms.guarantees import SentencePrivacy
from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.privatizers.sentences import utilities
from quietcorpus.transforms.reading.documents import Corpus
from quietcorpus.transforms.reading.sources import batches

from ..card.loading import LoadedRelease
from ..kinds.kind import Kind
from ..kinds.sentences import SentencesKind
from .game import (
    Coins,
    Document,
    Game,
    Scores,
    by_difference,
    rows_of,
)

_SENTENCES = (
    "The court found the defendant guilty of fraud.",
    "We had wonderful pasta at the little restaurant by the sea.",
)
_READ = 512
"""The sentences of the corpus among which those of canaries are sought."""
_TRIED = 12
_REPEATED, _MORE = (0, 1, 2, 4, 8), (0, 1, 2)
"""The times that both sentences are in a document anyhow, and that the second one is beyond."""
_SHARES = 2.0 ** -np.arange(7)
"""Of the canaries, for the parts that may be guessed."""

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]
Texts = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Pair:
    """Two documents that differ in one sentence, and what a draw at twice the epsilon shows.

    Attributes:
        one, other: their sentences.
        ratios: float64 (m,), the logarithm of each candidate's chance for `one` less for `other`.
        chances: float64 (2, m), these chances.
    """

    one: Texts
    other: Texts
    ratios: Floats
    chances: Floats

    @classmethod
    def of(cls, law: DeepCandidate, one: Texts, other: Texts, found: Ints) -> Pair:
        """Compute what is known of two documents from their utilities, int32 (2, m)."""
        logs = 2 * float(law.sampler.rate) * found.astype(np.float64)
        logs -= logs.max(axis=1, keepdims=True)
        logs -= np.log(np.exp(logs).sum(axis=1, keepdims=True))
        return cls(one, other, logs[0] - logs[1], np.exp(logs))

    def right(self, share: float) -> float:
        """Return the share of right guesses, of the surest `share` of all, at twice the epsilon.

        The coin is True for `one` of every second canary, and for `other` of the rest, so that both
        are guessed where a draw tells most.
        """
        values, places = np.unique(np.append(-self.ratios, self.ratios), return_inverse=True)
        sides = np.append(self.chances, self.chances[::-1], axis=1) / 2
        true, false = (np.cumsum(np.bincount(places, side, len(values))) for side in sides)
        among = np.append(0.0, (true + false) / 2)
        return float(np.interp(share / 2, among, np.append(0.0, true / 2)) / (share / 2))

    def tells(self, epsilon: float) -> float:
        """Return how far more guesses are right than epsilon allows, in one canary's deviations."""
        allowed = 1 / (1 + math.exp(-epsilon))
        beyond = max((self.right(share) - allowed) * math.sqrt(share) for share in _SHARES)
        return beyond / math.sqrt(allowed * (1 - allowed))


def game(kind: Kind, canaries: int, corpus: Corpus) -> Game:
    """Return documents that differ in a sentence; raises InputError for words' privacy."""
    cost = kind.cost
    if not (isinstance(kind, SentencesKind) and isinstance(cost, SentencePrivacy)):
        raise InputError(
            "canaries: not for the mechanism madlib of sentence-embeddings; test a release of its "
            "words, kind: words"
        )
    law = kind.parameters.law
    made = partial(
        Game,
        epsilon=float(cost.epsilon),
        delta=0.0,
        linked=True,
    )
    if isinstance(law, DeepCandidate):
        pairs = pairs_of(kind, law, known_sentences(kind, corpus))
        best = max(pairs, key=lambda pair: pair.tells(float(cost.epsilon)), default=None)
        if best is None:
            raise InputError(
                "canaries: the splitter of the candidates' language does not divide documents made "
                "of sentences into those sentences"
            )
        return _drawn(best, canaries, made)

    def score(loaded: LoadedRelease, known: Coins) -> Scores:
        embeddings = rows_of(loaded, canaries)["embedding"].combine_chunks().flatten().to_numpy()
        return by_difference(embeddings.reshape(canaries, -1).astype(np.float64), known)

    one, other = ([Document(sentence, {})] for sentence in _SENTENCES)
    return made(
        [(one, other)] * canaries,
        score,
        says="A canary is a document of one of two sentences. The coins of the first half are "
        "known, and show what each becomes.",
        twice=kind.spec.model_copy(update={"epsilon": 2 * cost.epsilon}),
        known=canaries // 2,
    )


def _drawn(pair: Pair, canaries: int, made: Callable[..., Game]) -> Game:
    """Return documents of a pair, of which every second has the sides the other way round."""
    sign = 1 - 2 * (np.arange(canaries) % 2)

    def score(loaded: LoadedRelease, _: Coins) -> Scores:
        scores: Scores = sign * pair.ratios[rows_of(loaded, canaries)["candidate"].to_numpy()]
        return scores

    one, other = ([Document(" ".join(side), {})] for side in (pair.one, pair.other))
    return made(
        [(one, other) if own > 0 else (other, one) for own in sign],
        score,
        says=f"A canary is a document of {len(pair.one)} sentences, of which the coin chooses one. "
        "Its score is how much likelier the drawn candidate is for one of the two documents.",
        right=pair.right,
    )


def known_sentences(kind: SentencesKind, corpus: Corpus) -> list[str]:
    """Return two sentences of our own, and some of the corpus's first ones."""
    found = list(_SENTENCES)
    for documents in batches(corpus):
        texts = documents.texts.slice(0, _READ).to_pylist()
        found += split(texts, kind.parameters.most_sentences, kind.manifest.language).texts
        if len(found) >= _READ:
            break
    return found[:_READ]


def pairs_of(kind: SentencesKind, law: DeepCandidate, known: Sequence[str]) -> Iterator[Pair]:
    """Yield pairs of documents of two sentences, each so many times, that differ in one of them.

    A candidate near the first sentence gains by it, while all that the second one makes likely
    loses: such a draw shows most of epsilon where the second sentence is there more often.
    Documents that are divided otherwise than they were made may differ in more, and are left out.
    """
    most, language = kind.parameters.most_sentences, kind.manifest.language
    candidates = kind.parameters.candidates.open()
    embeddings = kind.parameters.encoder.open().encode(list(known))
    find = utilities(law.utility, law.projections, candidates)
    near = (embeddings @ candidates.embeddings.T).astype(np.float64)
    ranked = np.argsort(near.mean(axis=1) - near.max(axis=1), kind="stable")
    best = [*range(len(_SENTENCES)), *ranked[ranked >= len(_SENTENCES)][:_TRIED]]
    shapes = [
        (both, both + more) for both, more in product(_REPEATED, _MORE) if 2 * both + more < most
    ]
    for first, second in permutations(best, 2):
        rows = [[first] * a + [second] * b + [own] for a, b in shapes for own in (first, second)]
        found = find(embeddings[np.concatenate(rows)], np.cumsum([0, *map(len, rows)]))
        sides = [tuple(known[number] for number in numbers) for numbers in rows]
        for place in range(0, len(rows), 2):
            one, other = sides[place : place + 2]
            if divides(one, language) and divides(other, language):
                yield Pair.of(law, one, other, found[place : place + 2])


def divides(sentences: Texts, language: str) -> bool:
    """Return whether a document of these sentences is divided into them."""
    return split([" ".join(sentences)], len(sentences) + 1, language).texts == list(sentences)
