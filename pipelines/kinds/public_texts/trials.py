"""Public documents that vote for the texts of pools, as private ones will, and are compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from quietcorpus.evaluation.classification import TextClassifier, scores, split
from quietcorpus.evaluation.embeddings import Moments, frechet_distance
from quietcorpus.indexes.documents import lsa
from quietcorpus.indexes.documents.lsa import Lsa
from quietcorpus.indexes.documents.pool import Pool
from quietcorpus.indexes.tokens.tokenizers import UNICODE_WORDS, Tokenizer
from quietcorpus.mechanisms.sentences.deep_candidate import UNIT, on_grid
from quietcorpus.mechanisms.votes.ballots import Ballots as AnyVotes
from quietcorpus.mechanisms.votes.ballots import Sums
from quietcorpus.mechanisms.votes.estimates import can_smooth, estimates, stand_out, weights
from quietcorpus.mechanisms.votes.pure_votes import PureVotes, votes_at
from quietcorpus.mechanisms.votes.rounds import rounds_at
from quietcorpus.transforms.artefacts.encoder import Encoder, EncoderSource
from quietcorpus.transforms.artefacts.folders import CarriedEncoder, PoolSource
from quietcorpus.transforms.errors import InputError, shown
from quietcorpus.transforms.reading.documents import Corpus
from quietcorpus.transforms.reading.identifiers import as_text
from quietcorpus.transforms.votes import AT_ONCE, Strata

from ...card.costs import is_accounted
from ...prepare.public_documents import batches
from .calibrate_report import TriedVotes
from .spec import MOST_LABELS

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

    A text whose embedding is zero is near nothing, and does not vote. The function calls `on_done`
    with the number of further texts that it has read.
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
        """Return the weights of texts, as a release does; see `vote_estimates`."""
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


def budgets(
    epsilon: Fraction, delta: Fraction | None, share: Fraction
) -> tuple[Fraction, Fraction]:
    """Split a budget between two releases, by their noise; a delta of None means geometric noise.

    Raises InputError where that takes too much noise.
    """
    try:
        found = rounds_at(epsilon, delta, share)
    except ValueError as error:
        raise InputError(f"rounds: {error}") from None
    return found.first, found.second


class NarrowedBallots(NamedTuple):
    """The votes of all documents for the texts of a pool that a first release has narrowed.

    Attributes:
        ballots: the votes.
        texts: how many texts are left.
        can_smooth: whether they are enough for estimates by their embeddings.
    """

    ballots: Ballots
    texts: int
    can_smooth: bool


def narrowed(
    documents: VotingDocuments,
    pool: Pool,
    encoder: Encoder | Lsa,
    noisy: Sums,
    deviation: Fraction,
    nearest: int,
) -> NarrowedBallots | None:
    """Narrow a pool with lists by noisy votes for its texts, int64 (labels, texts).

    Documents then vote for the `nearest` texts of the rest, or for all of it. None if no list
    stands out of noise of this deviation, or the rest is too little for an encoder.
    """
    assert pool.lists is not None
    sizes = np.asarray(pool.lists.sizes)
    chosen = np.flatnonzero(np.repeat(stand_out(noisy, sizes, deviation), sizes))
    texts = pool.texts.take(pa.array(chosen))
    vectors = pool.vectors[chosen]
    if isinstance(encoder, Lsa):
        try:
            encoder = lsa.fit(texts, tokenizer=encoder.vocabulary.tokenizer)
        except lsa.TooFewTexts:
            return None
        parts = pairwise([*range(0, len(texts), AT_ONCE), len(texts)])
        vectors = np.concatenate(
            [on_grid(encoder.encode(texts[a:b].to_pylist())) for a, b in parts]
        )
    if not len(texts):
        return None
    own = Pool(pool.manifest, texts, vectors)
    ballots = Ballots(documents, own, encoder, min(nearest, len(texts)))
    return NarrowedBallots(ballots, len(texts), can_smooth(len(texts), vectors.shape[1]))


@dataclass(frozen=True)
class VotesSettings:
    """The settings of a comparison.

    Attributes:
        epsilons: of a document.
        delta: of the release; None for geometric noise, whose delta is zero.
        nearest: the numbers of texts that a document votes for.
        documents: the number of documents that will be released; None for as many as vote here.
        runs: the number of runs, each with another split and fresh noise.
        seed: the seed of splits and noise.
        share: of epsilon, for the first of two releases, which are tried too; None for one alone.
    """

    epsilons: Sequence[Fraction]
    delta: Fraction | None
    nearest: Sequence[int]
    documents: int | None
    runs: int
    seed: int
    share: Fraction | None = None

    def budgets(self, epsilon: Fraction) -> tuple[Fraction, Fraction]:
        """Return what either of two releases may spend; raises InputError as `budgets` does."""
        assert self.share is not None
        return budgets(epsilon, self.delta, self.share)

    def votes(self, nearest: int, epsilon: Fraction) -> AnyVotes:
        """Return the mechanism; raises InputError for a budget that takes too much noise."""
        try:
            return votes_at(nearest, epsilon, self.delta)
        except ValueError as error:
            raise InputError(f"epsilons: {error}") from None


@dataclass(frozen=True)
class TriedPool:
    """A pool to try, with its encoder found.

    Attributes:
        name: as it was given.
        source: its place.
        texts: the number of its texts.
        can_smooth: whether they are enough for estimates by their embeddings.
        can_narrow: whether it is public, and has lists that a release can choose among.
        narrowed_by: the release that narrowed it; None for a public one.
        encoder: the encoder of documents, with which it was made.
    """

    name: str
    source: PoolSource
    texts: int
    can_smooth: bool
    can_narrow: bool
    narrowed_by: str | None
    encoder: EncoderSource | CarriedEncoder

    @classmethod
    def resolve(cls, name: str, place: str, encoder: str) -> TriedPool:
        """Find a pool; raises InputError for a private one, or another encoder than its own.

        A pool that a release narrowed is no more private than that release. `encoder` is that of
        pools that carry none.
        """
        source = PoolSource.resolve("pool", place)
        manifest = source.open().manifest
        if manifest.guarantee is not None and not is_accounted(manifest.guarantee):
            raise InputError(
                f"pool: {name} was made from private data, and nothing here accounts for that; "
                "build a pool from public texts, or narrow one by a release"
            )
        found: EncoderSource | CarriedEncoder
        if manifest.carries_encoder:
            found = CarriedEncoder.of(source, manifest)
        else:
            found = EncoderSource.resolve("encoder", encoder)
            found.check(manifest.encoder, "pool")
        enough = can_smooth(manifest.texts, manifest.encoder["dimensions"])
        narrowed_by = manifest.source["pattern"] if manifest.guarantee else None
        can_narrow = manifest.guarantee is None and manifest.search is not None
        return cls(name, source, manifest.texts, enough, can_narrow, narrowed_by, found)

    def ballots(
        self, documents: VotingDocuments, nearest: int, on_done: Callable[[int], object]
    ) -> Ballots:
        """Find the votes of all documents."""
        return Ballots(documents, self.source.open(), self.encoder.open(), nearest, on_done)


def settings_of(pools: Sequence[TriedPool], settings: VotesSettings) -> list[TriedVotes]:
    """Return what is tried; raises InputError for more votes than a pool has texts."""
    nearest = settings.nearest
    if settings.share and not any(one.can_narrow for one in pools):
        raise InputError(
            "rounds: no public pool has lists, which a first release chooses among; build one with "
            "--search, or drop the option"
        )
    for one in pools:
        if max(nearest) > one.texts:
            raise InputError(
                f"nearest: {max(nearest)} is more than the {one.texts:,} texts of {one.name}"
            )
    return [
        TriedVotes(one.name, count, rounds, smooth)
        for one in pools
        for rounds in ((1, 2) if settings.share and one.can_narrow else (1,))
        for count in nearest
        for smooth in ((False, True) if one.can_smooth or rounds == 2 else (False,))
    ]


def tokenizer_of(pools: Sequence[TriedPool]) -> Tokenizer:
    """Return the tokeniser of the first pool that has one: pools in a comparison share theirs."""
    carried = (one.encoder for one in pools if isinstance(one.encoder, CarriedEncoder))
    return next((encoder.tokenizer for encoder in carried), UNICODE_WORDS)


@dataclass(frozen=True, eq=False)
class Trial:
    """Releases from some pools, simulated.

    Attributes:
        documents: those that vote, and are compared with.
        pools: the pools, by their names.
        ballots: the votes of all documents for each.
        settings: of the comparison.
    """

    documents: VotingDocuments
    pools: dict[str, TriedPool]
    ballots: dict[str, Ballots]
    settings: VotesSettings

    def voting(self, halves: Split) -> Numbers:
        """Return the documents that vote: half of all, or fewer if fewer will be released."""
        return halves.voting[: self.settings.documents]

    def found(
        self,
        one: TriedVotes,
        epsilon: Fraction | None,
        halves: Split,
        generator: np.random.Generator,
    ) -> tuple[float, float, float]:
        """Return the number of rows, their distance from tested documents, and macro-F1.

        Without noise for an `epsilon` of None.
        """
        votes = self.settings.votes(one.nearest, epsilon or self.settings.epsilons[-1])
        ballots = self.ballots[one.pool]
        if epsilon is None:
            sums = self._sums(ballots, votes, halves).astype(np.int64)
            return self._measured(ballots, sums, halves, generator)
        return self._released(ballots, votes, one.smooth, halves, generator)

    def found_in_second(
        self,
        made: NarrowedOnce,
        one: TriedVotes,
        epsilon: Fraction,
        halves: Split,
        generator: np.random.Generator,
    ) -> tuple[float, float, float]:
        """Return the same of a second release, from the pool that a first one has narrowed.

        The trial makes none where the first release found too little.
        """
        found = made.narrowed(one.pool, epsilon)
        if found is None or found.texts < one.nearest or (one.smooth and not found.can_smooth):
            return 0.0, float("nan"), float("nan")
        _, second = self.settings.budgets(epsilon)
        votes = self.settings.votes(one.nearest, second)
        return self._released(found.ballots, votes, one.smooth, halves, generator)

    def narrows(self, pool: str) -> bool:
        """Return whether two releases are tried from a pool."""
        return self.settings.share is not None and self.pools[pool].can_narrow

    def narrowed(
        self, pool: str, epsilon: Fraction, halves: Split, generator: np.random.Generator
    ) -> NarrowedBallots | None:
        """Simulate a first release; return the votes for the rest of a pool, if there is any."""
        first, _ = self.settings.budgets(epsilon)
        most = max(self.settings.nearest)
        votes, own = self.settings.votes(most, first), self.pools[pool]
        noisy = self._noisy(self.ballots[pool], votes, halves, generator)
        opened, encoder = own.source.open(), own.encoder.open()
        return narrowed(self.documents, opened, encoder, noisy, votes.deviation, most)

    def _sums(self, ballots: Ballots, votes: AnyVotes, halves: Split) -> npt.NDArray[np.float64]:
        """Add up the votes; a corpus of more documents than vote here has as many times theirs."""
        voting = self.voting(halves)
        sums = ballots.sums(votes, voting)
        times = (self.settings.documents or len(voting)) / len(voting)
        found: npt.NDArray[np.float64] = np.rint(sums * times)
        return found

    def _noisy(
        self, ballots: Ballots, votes: AnyVotes, halves: Split, generator: np.random.Generator
    ) -> Sums:
        sums = self._sums(ballots, votes, halves)
        noisy: Sums = (sums + np.rint(_noise(votes, sums.shape, generator))).astype(np.int64)
        return noisy

    def _released(
        self,
        ballots: Ballots,
        votes: AnyVotes,
        smooth: bool,
        halves: Split,
        generator: np.random.Generator,
    ) -> tuple[float, float, float]:
        noisy = self._noisy(ballots, votes, halves, generator)
        estimates = ballots.estimates(votes, noisy, smooth)
        return self._measured(ballots, estimates, halves, generator)

    def _measured(
        self, ballots: Ballots, noisy: Sums, halves: Split, generator: np.random.Generator
    ) -> tuple[float, float, float]:
        chosen = noisy > 0
        given = weights(noisy, chosen)
        distance = ballots.distance(given, halves.tested, generator)
        if self.documents.labels == 1:
            return float(chosen.sum()), distance, float("nan")
        return float(chosen.sum()), distance, ballots.f1(given, chosen, halves.tested)

    def unweighted(self, pool: str, splits: Sequence[Split]) -> float:
        """Return the mean distance of a pool's texts if all weigh the same."""
        ballots, seed = self.ballots[pool], self.settings.seed
        every = np.ones(ballots.shape)
        return float(
            np.mean(
                [
                    ballots.distance(every, halves.tested, np.random.default_rng([seed, run]))
                    for run, halves in enumerate(splits)
                ]
            )
        )


class NarrowedOnce:
    """The pools that first releases have narrowed in a run: each is made once for an epsilon."""

    def __init__(self, trial: Trial, run: int, halves: Split) -> None:
        self._trial, self._run, self._halves = trial, run, halves
        self._made: dict[tuple[str, Fraction], NarrowedBallots | None] = {}

    def narrowed(self, pool: str, epsilon: Fraction) -> NarrowedBallots | None:
        """Return the votes for the rest of a pool after a first release, if it is enough."""
        key = pool, epsilon
        if key not in self._made:
            settings = self._trial.settings
            place = list(self._trial.pools).index(pool), settings.epsilons.index(epsilon)
            # Other numbers than those of releases, of which there are four.
            generator = np.random.default_rng([settings.seed, *place, self._run, 1])
            self._made[key] = self._trial.narrowed(pool, epsilon, self._halves, generator)
        return self._made[key]


def _noise(
    votes: AnyVotes, shape: tuple[int, ...], generator: np.random.Generator
) -> npt.NDArray[np.float64]:
    """Draw noise like that of a release, before it is rounded, of this shape."""
    if isinstance(votes, PureVotes):
        return generator.laplace(0, 1 / float(votes.rate), shape)
    return generator.normal(0, float(votes.deviation), shape)
