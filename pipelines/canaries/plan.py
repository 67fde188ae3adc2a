"""The tests of an audit by canaries and the number of guesses, fixed before any run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from scipy import stats

from quietcorpus.evaluation.audits.one_run import (
    Curve,
    Guesses,
    approximate,
    fewest_right,
    gaussian,
    independent_deviations,
    largest,
    right_of_gaussian,
)
from quietcorpus.mechanisms.accounting.concentrated import gaussian_epsilon, rounded_up

from .game import Game

_SHARES = np.sqrt(2) ** np.arange(10)
"""By which a half of the canaries is divided, for the numbers of guesses that are tried."""
_LARGEST_DISTANCE = 40.0


@dataclass(frozen=True)
class Test:
    """One comparison of the guesses with a statement.

    Attributes:
        name: `stated`, of the epsilon and delta as such; `gaussian`, of noise of that law; or
            `independent`, of such noise on canaries that share none, from guesses of all coins.
        parameter: the stated epsilon, or the distance of the Gaussian's means.
        delta: the delta at which the parameter is stated as an epsilon.
        level: the chance that it errs.
    """

    name: str
    parameter: float
    delta: float
    level: float

    def curve(self, parameter: float) -> Curve:
        """Return the curve of a parameter."""
        if self.name != "stated":
            return gaussian(parameter)
        return approximate(parameter, self.delta)

    def found(self, runs: Sequence[Guesses]) -> float:
        """Return the largest parameter that runs refute; `independent` takes guesses of all."""
        if self.name == "independent":
            right, made = sum(run.right for run in runs), sum(run.made for run in runs)
            return independent_deviations(right, made, self.level)
        if self.name == "gaussian":
            return largest(runs, self.curve, self.level, _LARGEST_DISTANCE)
        return largest(runs, self.curve, self.level)

    def epsilon(self, parameter: float) -> float:
        """Return the epsilon at delta that a parameter means."""
        if self.name == "stated" or not parameter:
            return parameter
        rho = rounded_up(Fraction(parameter) ** 2 / 2)
        return float(gaussian_epsilon(rho, Fraction(self.delta)))


@dataclass(frozen=True)
class Plan:
    """The tests and the guesses, which are fixed before any run.

    Attributes:
        tests: the comparisons.
        guesses: the number of guesses in each run.
        reach: the largest epsilon that these guesses can show, if all are right.
        shows_twice: whether twice the loss would be found, more often than not, as far as it is
            known; after a rehearsal, whether that found twice the epsilon.
        rehearsal: what a release at twice the epsilon showed.
    """

    tests: tuple[Test, ...]
    guesses: int
    reach: float
    shows_twice: bool
    rehearsal: Guesses | None = None

    @property
    def tells(self) -> bool:
        """Return whether the guesses can show more than what is stated."""
        return self.reach > 0

    def rehearsed(self, loud: Guesses, runs: int) -> Plan:
        """Return the plan after a rehearsal, with the result of `runs` runs like it."""
        found = any(test.found([loud] * runs) > test.parameter for test in self.tests)
        return replace(self, shows_twice=found, rehearsal=loud)


def planned(game: Game, runs: int, level: float) -> Plan:
    """Fix the tests and the number of guesses, from what is stated alone.

    Guesses are a half of the canaries, or fewer: for Gaussian noise and drawn candidates, which
    reveal most at their tails, the number at which twice the loss is expected to pass by most
    deviations.
    """
    split = level / (1 + (game.apart is not None) + (game.own is not None))
    tests = [Test("stated", game.epsilon, game.delta, split)]
    if game.apart is not None:
        tests.append(Test("gaussian", game.apart, game.delta, split))
    most, told = game.unknown - game.weaker, tests[-1]
    tried = sorted({max(1, int(most / (2 * share))) for share in _SHARES})
    if game.apart is None and game.right is None:
        tried = tried[-1:]
    margins = {made: _margin(game, told, made, runs) for made in tried}
    made = max(tried, key=lambda one: (margins[one], one))
    if game.right is not None and margins[made] <= 0:
        made = tried[-1]  # which shows most of what has no noise at all
    known = game.shows is not None or game.right is not None
    best = [Guesses(game.unknown, made, made)] * runs
    reach = max(
        (test.epsilon(found) for test in tests if (found := test.found(best)) > test.parameter),
        default=0.0,
    )
    shows = known and margins[made] > 0
    if game.own is not None:
        assert game.apart is not None
        alone = Test("independent", game.apart, game.delta, split)
        tests.append(alone)
        every = game.unknown
        expected = (every - game.weaker) * stats.norm.cdf(game.apart) + game.weaker / 2
        shows = shows or alone.found([Guesses(every, every, int(expected))] * runs) > game.apart
        if (found := alone.found([Guesses(every, every, every)] * runs)) > game.apart:
            reach = max(reach, alone.epsilon(found))
    return Plan(tuple(tests), made, reach, shows)


def _margin(game: Game, test: Test, made: int, runs: int) -> float:
    """Return by how many deviations half of the noise passes a test, where scores show noise."""
    fewest = fewest_right(game.unknown, made, runs, test.curve(test.parameter), test.level)
    if fewest > made:
        return -math.inf
    if game.right is not None:
        share = game.right(made / game.unknown)
    elif game.apart is None:
        shown = game.epsilon if game.shows is None else game.shows
        share = 1 / (1 + math.exp(-2 * shown))
    else:
        share = right_of_gaussian(2 * game.apart, made / (game.unknown - game.weaker))
    deviation = math.sqrt(made * share * (1 - share)) + 1e-9
    return (made * share - fewest) / deviation
