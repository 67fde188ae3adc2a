"""Public documents that vote for the texts of pools, as private ones will, and are compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from quietcorpus.evaluation.classification import scores
from quietcorpus.evaluation.features import split
from quietcorpus.evaluation.frechet import Moments, frechet_distance
from quietcorpus.evaluation.text_classifier import TextClassifier
from quietcorpus.indexes import lsa
from quietcorpus.indexes.lsa import Lsa
from quietcorpus.indexes.pool import Pool
from quietcorpus.indexes.tokenizers import Tokenizer
from quietcorpus.mechanisms.ballots import Ballots as AnyVotes
from quietcorpus.mechanisms.ballots import Sums
from quietcorpus.mechanisms.deep_candidate import UNIT, on_grid
from quietcorpus.mechanisms.vote_estimates import estimates
from quietcorpus.transforms.artefacts.encoder import Encoder
from quietcorpus.transforms.errors import InputError, shown
from quietcorpus.transforms.reading.documents import Corpus
from quietcorpus.transforms.reading.spelling import as_text
from quietcorpus.transforms.votes import AT_ONCE, Strata

from ..artefacts.public_documents import batches
from ..schema.public_texts import MOST_LABELS

LEAST = 20
"""The fewest documents of a label, or without labels of all: half of them vote."""
_FITTED = 2_000
"""Documents that the common space is made of; more would tell little more."""

Chosen = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]
Weights = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Split:
    """One division of the documents: the numbers of those that vote, and of the others."""

    voting: Numbers
    tested: Numbers


@dataclass(frozen=True, eq=False)
class VotingDocuments:
    """Public documents in the place of private ones.

    Attributes:
        texts: large_string (n,).
        strata: the number of each one's label, int64 (n,); zeros without labels.
        labels: how many there are; 1 if documents are counted together.
        space: an encoder made of some of them, in which texts of all pools can be compared.
        points: their embeddings in that space, float32 (n, d), of length 1 or 0.
    """

    texts: pa.LargeStringArray
    strata: Numbers
    labels: int
    space: Lsa
    points: npt.NDArray[np.float32]

    @classmethod
    def read(
        cls, corpus: Corpus, label: str | None, tokenizer: Tokenizer, seed: int
    ) -> VotingDocuments:
        """Read all documents that have a label, if it is asked for.

        Raises InputError for too few documents, or labels that are too many or too rare.
        """
        parts = list(batches(corpus))
        nothing = pa.array([], pa.large_string())
        texts = pa.concat_arrays([nothing, *(part.texts for part in parts)])
        strata, labels = np.zeros(len(texts), np.int64), 1
        if label is not None:
            columns = [as_text(part.columns[label]) for part in parts]
            values = sorted({value for own in columns for value in own.to_pylist()} - {None})
            _check_labels(label, values)
            listed = Strata(label, tuple(values))
            strata = np.concatenate([listed.numbers(part) for part in parts])
            texts, strata = texts.filter(pa.array(strata >= 0)), strata[strata >= 0]
            labels = len(values)
            rarest = int(np.bincount(strata).argmin())
            if (size := int((strata == rarest).sum())) < LEAST:
                raise InputError(
                    f"label: {shown(values[rarest])} has {size} documents; give {LEAST} or more "
                    "of each"
                )
        if len(texts) < LEAST:
            raise InputError(
                f"source: {corpus.pattern} has {len(texts)} documents; give {LEAST} or more"
            )
        some = np.random.default_rng(seed).permutation(len(texts))[:_FITTED]
        try:
            space = lsa.fit(texts.take(pa.array(some)), tokenizer=tokenizer)
        except lsa.TooFewTexts as error:
            raise InputError(
                f"source: the documents have too little in common: {error}; give more"
            ) from None
        return cls(texts, strata, labels, space, in_space(space, texts))

    def few(self, count: int) -> VotingDocuments:
        """Return the first documents, with labels by turns: their scores mean nothing."""
        texts, points = self.texts[:count], self.points[:count]
        strata = np.arange(len(texts), dtype=np.int64) % self.labels
        return VotingDocuments(texts, strata, self.labels, self.space, points)

    def split(self, seed: int) -> Split:
        """Divide the documents at random into halves, with half of every label in each."""
        return Split(*split(self.strata, seed, 0.5))


def _check_labels(label: str, values: Sequence[str]) -> None:
    if len(values) < 2:
        raise InputError(
            f"label: {label} has {len(values)} different values, and a classifier needs two; "
            "leave it out"
        )
    if len(values) > MOST_LABELS:
        raise InputError(
            f"label: {label} has {len(values):,} different values; name a column of at most "
            f"{MOST_LABELS}"
        )


def in_space(space: Lsa, texts: pa.LargeStringArray) -> npt.NDArray[np.float32]:
    """Return the embeddings of texts, float32 (n, d), of length 1, or 0 without a known word."""
    found = [space.encode(texts[a:b].to_pylist()) for a, b in _bounds(len(texts))]
    return on_grid(np.concatenate(found)) / np.float32(UNIT)


def _bounds(size: int) -> list[tuple[int, int]]:
    return list(pairwise([*range(0, size, AT_ONCE), size]))


def ballots_of(
    texts: pa.LargeStringArray,
    pool: Pool,
    encoder: Encoder | Lsa,
    nearest: int,
    on_done: Callable[[int], object],
) -> tuple[Numbers, npt.NDArray[np.int32]]:
    """Return the numbers of the texts that vote, and the `nearest` texts of the pool to each.

    A text whose embedding is zero is near nothing, and does not vote. `on_done` is told how many
    more have been read.
    """
    voters, items = [], []
    for start, end in _bounds(len(texts)):
        vectors = on_grid(encoder.encode(texts[start:end].to_pylist()))
        somewhere = np.flatnonzero(vectors.any(axis=1))
        voters.append(start + somewhere)
        items.append(pool.nearest(vectors[somewhere], nearest).astype(np.int32))
        on_done(end - start)
    return np.concatenate(voters), np.concatenate(items)


class Ballots:
    """The votes of all documents for one pool's texts, and what its texts are compared by."""

    def __init__(
        self,
        documents: VotingDocuments,
        pool: Pool,
        encoder: Encoder | Lsa,
        nearest: int,
        on_done: Callable[[int], object] = lambda _: None,
    ) -> None:
        """Find the votes as `ballots_of` does, of the most texts that will be tried."""
        self._documents, self._pool = documents, pool
        self._voters, self._items = ballots_of(documents.texts, pool, encoder, nearest, on_done)
        self._points = in_space(documents.space, pool.texts)
        self._classifier = None
        if documents.labels > 1:
            self._classifier = TextClassifier(pool.texts.to_pylist(), documents.texts.to_pylist())

    @property
    def shape(self) -> tuple[int, int]:
        """Return the number of labels and of texts."""
        return self._documents.labels, len(self._pool.texts)

    def sums(self, votes: AnyVotes, voting: Numbers) -> Sums:
        """Add up the votes of some documents, int64 (labels, texts)."""
        among = np.isin(self._voters, voting)
        items = self._items[among, : votes.nearest].astype(np.int64)
        return votes.sums(items, self._documents.strata[self._voters[among]], self.shape)

    def estimates(self, votes: AnyVotes, noisy: Sums, smooth: bool) -> Sums:
        """Return what texts are weighted by, as a release does; see `vote_estimates`."""
        return estimates(votes, noisy, self._pool.vectors if smooth else None)

    def f1(self, given: Weights, chosen: Chosen, tested: Numbers) -> float:
        """Return macro-F1, on tested documents, of what is learnt from the rows of a release."""
        assert self._classifier is not None
        labels, rows = np.nonzero(chosen)
        predicted = self._classifier.predicted(rows, labels, given[chosen])
        return scores(self._documents.strata[tested], predicted[tested]).f1

    def distance(self, given: Weights, tested: Numbers, generator: np.random.Generator) -> float:
        """Return how far weighted texts, (labels, texts), lie from tested documents.

        It is the mean over labels; NaN if a label has no texts.
        """
        if not given.any(axis=1).all():
            return float("nan")
        strata, points = self._documents.strata, self._documents.points
        found = []
        for label, own in enumerate(given):
            target = points[tested[strata[tested] == label]]
            drawn = Moments.drawn(self._points, own, len(target), generator)
            found.append(frechet_distance(drawn, Moments.of(target, np.ones(len(target)))))
        return float(np.mean(found))


def of_documents(documents: VotingDocuments, halves: Split) -> tuple[float, float]:
    """Return what voting documents themselves give: their distance from the others, and macro-F1.

    The latter is NaN without labels.
    """
    strata, points = documents.strata, documents.points
    distances = [
        frechet_distance(
            *(
                Moments.of(own, np.ones(len(own)))
                for own in (points[half[strata[half] == label]] for half in _both(halves))
            )
        )
        for label in range(documents.labels)
    ]
    if documents.labels == 1:
        return float(np.mean(distances)), float("nan")
    texts = documents.texts.to_pylist()
    learnt = TextClassifier(*([texts[row] for row in half] for half in _both(halves)))
    known = strata[halves.voting]
    predicted = learnt.predicted(np.arange(len(known)), known)
    return float(np.mean(distances)), scores(strata[halves.tested], predicted).f1


def _both(halves: Split) -> tuple[Numbers, Numbers]:
    return halves.voting, halves.tested
