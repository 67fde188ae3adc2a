"""The choice of a pool of texts, and of the texts that a document votes for, on public documents.

Documents are split in two at random, anew for every run: one half votes in place of the private
corpus, and what would be released is compared with the other half. Nothing private is read, and
nothing is released. A pool that a release narrowed tells what that release does.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np

from quietcorpus.evaluation.calibration import Choice, choose
from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.reading.documents import Corpus

from ...terminal.progress import Steps
from .calibrate_report import CalibratedVotes, Runs, TriedVotes, VotesOutcome
from .trials import (
    Ballots,
    NarrowedOnce,
    Trial,
    TriedPool,
    VotesSettings,
    VotingDocuments,
    ballots_of,
    of_documents,
    settings_of,
    tokenizer_of,
)
from .voting import MOST_SUMS

_TIMED_DOCUMENTS = 200


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
    tried = settings_of(pools, settings)
    for epsilon in settings.epsilons:
        settings.votes(max(settings.nearest), epsilon)
    split = {one: settings.budgets(one) for one in settings.epsilons} if settings.share else {}
    for own in split.values():
        for epsilon in own:
            settings.votes(max(settings.nearest), epsilon)
    steps = Steps(4, bar=progress)
    with steps.step("reading documents"):
        documents = VotingDocuments.read(corpus, label, tokenizer_of(pools), settings.seed)
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
    trial = Trial(documents, {one.name: one for one in pools}, ballots, settings)
    grid: tuple[Fraction | None, ...] = (*settings.epsilons, None)
    shape = len(grid), len(tried), settings.runs
    texts, distances, f1 = (np.full(shape, np.nan) for _ in range(3))

    def released() -> Iterator[None]:
        for run, halves in enumerate(splits):
            made = NarrowedOnce(trial, run, halves)
            for second, one in enumerate(tried):
                for first, epsilon in enumerate(grid):
                    if epsilon is None and not one.is_without_noise:
                        continue
                    place = first, second, run
                    generator = np.random.default_rng([settings.seed, *place])
                    if one.rounds == 1:
                        found = trial.found(one, epsilon, halves, generator)
                    else:
                        assert epsilon is not None
                        found = trial.found_in_second(made, one, epsilon, halves, generator)
                    texts[place], distances[place], f1[place] = found
                    yield

    total = settings.runs * sum(len(grid) - (not one.is_without_noise) for one in tried)
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
        rounds=split,
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
        trial = Trial(few, {one.name: one}, ballots, settings)
        prepared = time.perf_counter()
        ballots_of(few.texts, pool, encoder, most, lambda _: None)
        counted = time.perf_counter()
        asked = TriedVotes(one.name, most, 1, False), None, few.split(0)
        trial.found(*asked, np.random.default_rng(0))
        found = time.perf_counter()
        narrowings = settings.runs * len(settings.epsilons) if trial.narrows(one.name) else 0
        votes = prepared - begun + share * (counted - prepared)
        seconds += (1 + narrowings) * votes + releases * (found - counted)
    return seconds


def _check_sums(pools: Sequence[TriedPool], labels: int) -> None:
    for one in pools:
        if (sums := one.texts * labels) > MOST_SUMS:
            raise InputError(
                f"pool: {one.name} and {labels} labels make {sums:,} sums, and a release has at "
                f"most {MOST_SUMS:,}; give a smaller pool, or fewer labels"
            )


def _choice(distances: Runs, f1: Runs) -> Choice | None:
    """Choose among those that release rows of every label in every run; None if there is none."""
    possible = np.flatnonzero(np.isfinite(distances).all(axis=1))
    if not len(possible):
        return None
    own = f1[possible]
    found = choose(-distances[possible] if np.isnan(own).any() else own)
    return Choice(int(possible[found.best]), tuple(possible[list(found.among)].tolist()))
