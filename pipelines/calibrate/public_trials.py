"""Simulated releases of public texts; NumPy's noise suffices, as nothing is published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from quietcorpus.mechanisms.ballots import Ballots as AnyVotes
from quietcorpus.mechanisms.ballots import Sums
from quietcorpus.mechanisms.pure_votes import PureVotes
from quietcorpus.mechanisms.vote_weights import weights

from .public_rounds import NarrowedBallots, narrowed
from .public_texts_report import TriedVotes
from .public_tried import TriedPool, VotesSettings
from .public_votes import Ballots, Numbers, Split, VotingDocuments


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
        votes = self.settings.votes(one.nearest, epsilon or self.settings.epsilons[-1], one.falling)
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

        There is no such release where the first one found too little.
        """
        found = made.narrowed(one.pool, epsilon)
        if found is None or found.texts < one.nearest or (one.smooth and not found.can_smooth):
            return 0.0, float("nan"), float("nan")
        _, second = self.settings.budgets(epsilon)
        votes = self.settings.votes(one.nearest, second, one.falling)
        return self._released(found.ballots, votes, one.smooth, halves, generator)

    def narrows(self, pool: str) -> bool:
        """Return whether two releases are tried from a pool."""
        return self.settings.share is not None and self.pools[pool].can_narrow

    def narrowed(
        self, pool: str, epsilon: Fraction, halves: Split, generator: np.random.Generator
    ) -> NarrowedBallots | None:
        """Simulate a first release; return the votes for what it leaves of a pool, if anything."""
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
        """Return the votes for what a first release leaves of a pool, if it leaves enough."""
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
