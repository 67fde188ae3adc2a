"""The choice of a pool of texts, and of the texts that a document votes for, on public documents.

Documents are split in two at random, anew for every run: one half votes in place of the private
corpus, and what would be released is compared with the other half. Nothing private is read, and
nothing is released. A pool that a release narrowed tells what that release does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from quietcorpus.evaluation.choice import Choice, choose
from quietcorpus.indexes.tokenizers import UNICODE_WORDS, Tokenizer
from quietcorpus.mechanisms.vote_estimates import can_smooth
from quietcorpus.mechanisms.vote_weights import weights
from quietcorpus.mechanisms.votes import Sums, Votes
from quietcorpus.pipelines.calibrate.public_texts_report import (
    CalibratedVotes,
    Runs,
    TriedVotes,
    VotesOutcome,
)
from quietcorpus.pipelines.calibrate.public_votes import (
    Ballots,
    Numbers,
    Split,
    VotingDocuments,
    ballots_of,
    of_documents,
)
from quietcorpus.pipelines.card.together import is_accounted
from quietcorpus.pipelines.kinds.public_texts_votes import MOST_SUMS
from quietcorpus.pipelines.terminal.progress import Steps
from quietcorpus.transforms.artefacts.encoder import EncoderSource
from quietcorpus.transforms.artefacts.pool import CarriedEncoder, PoolSource
from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.reading.documents import Corpus

_TIMED_DOCUMENTS = 200


@dataclass(frozen=True)
class VotesSettings:
    """The settings of a comparison.

    Attributes:
        epsilons: of a document.
        delta: of the release.
        nearest: the numbers of texts that a document votes for.
        documents: the number of documents that will be released; None for as many as vote here.
        runs: the number of runs, each with another split and fresh noise.
        seed: the seed of splits and noise.
    """

    epsilons: Sequence[Fraction]
    delta: Fraction
    nearest: Sequence[int]
    documents: int | None
    runs: int
    seed: int

    def votes(self, nearest: int, epsilon: Fraction) -> Votes:
        """Return the mechanism; raises InputError for a budget that takes too much noise."""
        try:
            return Votes(nearest, epsilon, self.delta)
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
        narrowed_by: the release that narrowed it; None for a public one.
        encoder: the encoder of documents, with which it was made.
    """

    name: str
    source: PoolSource
    texts: int
    can_smooth: bool
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
        return cls(name, source, manifest.texts, enough, narrowed_by, found)

    def ballots(
        self, documents: VotingDocuments, nearest: int, on_done: Callable[[int], object]
    ) -> Ballots:
        """Find the votes of all documents."""
        return Ballots(documents, self.source.open(), self.encoder.open(), nearest, on_done)


def calibrate(
    pools: Sequence[TriedPool],
    corpus: Corpus,
    label: str | None,
    settings: VotesSettings,
    *,
    progress: bool,
) -> CalibratedVotes:
    """Try every pool and number of votes at every epsilon.

    Raises InputError for settings that are not possible, and as `VotingDocuments.read` does.
    """
    tried = _tried(pools, settings.nearest)
    for epsilon in settings.epsilons:
        settings.votes(1, epsilon)
    steps = Steps(4, bar=progress)
    with steps.step("reading documents"):
        documents = VotingDocuments.read(corpus, label, _tokenizer(pools), settings.seed)
        _check_sums(pools, documents.labels)
    with steps.step("timing some documents"):
        seconds = _timed(pools, documents, settings)
    steps.expect(seconds, "some of the documents")
    total = len(documents.texts) * len(pools)
    with steps.step("counting votes", total, "documents") as display:
        ballots = {
            one.name: one.ballots(documents, max(settings.nearest), display.advance)
            for one in pools
        }
    splits = [documents.split(settings.seed + run) for run in range(settings.runs)]
    trial = _Trial(documents, ballots, settings)
    grid: tuple[Fraction | None, ...] = (*settings.epsilons, None)
    shape = len(grid), len(tried), settings.runs
    texts, distances, f1 = (np.full(shape, np.nan) for _ in range(3))

    def released() -> Iterator[None]:
        for run, halves in enumerate(splits):
            for second, one in enumerate(tried):
                for first, epsilon in enumerate(grid):
                    if epsilon is None and one.smooth:  # which changes nothing then
                        continue
                    place = first, second, run
                    texts[place], distances[place], f1[place] = trial.found(
                        one, epsilon, halves, np.random.default_rng([settings.seed, *place])
                    )
                    yield

    total = settings.runs * sum(len(grid) - one.smooth for one in tried)
    for _ in steps.each(released(), total, "simulating releases", "releases"):
        pass
    direct = np.mean([of_documents(documents, halves) for halves in splits], axis=0)
    outcomes = [
        VotesOutcome(epsilon, rows, away, own, None if epsilon is None else _choice(away, own))
        for epsilon, rows, away, own in zip(grid, texts, distances, f1, strict=True)
    ]
    return CalibratedVotes(
        voting=len(trial.voting(splits[0])),
        tested=len(splits[0].tested),
        released=settings.documents or len(splits[0].voting),
        own=(float(direct[0]), float(direct[1])),
        pools={name: trial.unweighted(name, splits) for name in ballots},
        narrowed={one.name: one.narrowed_by for one in pools if one.narrowed_by is not None},
        tried=tried,
        outcomes=outcomes,
    )


def _timed(
    pools: Sequence[TriedPool], documents: VotingDocuments, settings: VotesSettings
) -> float:
    """Return the seconds that all may take, by some documents and one release of each pool."""
    few, most, seconds = documents.few(_TIMED_DOCUMENTS), max(settings.nearest), 0.0
    share = len(documents.texts) / len(few.texts)
    releases = settings.runs * len(settings.nearest) * (2 * len(settings.epsilons) + 1)
    for one in pools:
        pool, encoder = one.source.open(), one.encoder.open()
        ballots_of(few.texts, pool, encoder, most, lambda _: None)  # compiles and loads
        begun = time.perf_counter()
        ballots = {one.name: Ballots(few, pool, encoder, most)}
        prepared = time.perf_counter()
        ballots_of(few.texts, pool, encoder, most, lambda _: None)
        counted = time.perf_counter()
        asked = TriedVotes(one.name, most, False), None, few.split(0), np.random.default_rng(0)
        _Trial(few, ballots, settings).found(*asked)
        found = time.perf_counter()
        seconds += prepared - begun + share * (counted - prepared) + releases * (found - counted)
    return seconds


@dataclass(frozen=True, eq=False)
class _Trial:
    """Simulated releases; NumPy's noise suffices, as nothing is published."""

    documents: VotingDocuments
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
        """Return the number of rows, their distance from tested documents, and macro-F1."""
        votes = self.settings.votes(one.nearest, epsilon or self.settings.epsilons[-1])
        ballots, voting = self.ballots[one.pool], self.voting(halves)
        sums = ballots.sums(votes, voting)
        # A corpus of more documents than vote here has as many times their votes.
        sums = np.rint(sums * ((self.settings.documents or len(voting)) / len(voting)))
        if epsilon is not None:
            sums += np.rint(generator.normal(0, float(votes.noise.deviation), sums.shape))
        noisy: Sums = sums.astype(np.int64)
        if epsilon is not None:
            noisy = ballots.estimates(votes, noisy, one.smooth)
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


def _tried(pools: Sequence[TriedPool], nearest: Sequence[int]) -> list[TriedVotes]:
    """Return what is tried; raises InputError for more votes than a pool has texts."""
    for one in pools:
        if max(nearest) > one.texts:
            raise InputError(
                f"nearest: {max(nearest)} is more than the {one.texts:,} texts of {one.name}"
            )
    return [
        TriedVotes(one.name, count, smooth)
        for one in pools
        for count in nearest
        for smooth in ((False, True) if one.can_smooth else (False,))
    ]


def _check_sums(pools: Sequence[TriedPool], labels: int) -> None:
    for one in pools:
        if (sums := one.texts * labels) > MOST_SUMS:
            raise InputError(
                f"pool: {one.name} and {labels} labels make {sums:,} sums, and a release has at "
                f"most {MOST_SUMS:,}; give a smaller pool, or fewer labels"
            )


def _tokenizer(pools: Sequence[TriedPool]) -> Tokenizer:
    """Return the tokeniser of the first pool that has one: pools in a comparison share theirs."""
    carried = (one.encoder for one in pools if isinstance(one.encoder, CarriedEncoder))
    return next((encoder.tokenizer for encoder in carried), UNICODE_WORDS)


def _choice(distances: Runs, f1: Runs) -> Choice | None:
    """Choose among those that release rows of every label in every run; None if there is none."""
    possible = np.flatnonzero(np.isfinite(distances).all(axis=1))
    if not len(possible):
        return None
    measured = -distances if np.isnan(f1).any() else f1
    found = choose(measured[possible])
    return Choice(int(possible[found.best]), tuple(possible[list(found.among)].tolist()))
