"""The budgets of two releases of votes, of which the first chooses what the second is about.

A first release tells, at a part of the budget, where in a large pool the documents lie; a second
one has the rest for the texts there (`quietcorpus.mechanisms.votes.estimates`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from ..accounting.concentrated import largest_rho, rho_of
from ..accounting.filters import FILTERS, Concentrated
from ..accounting.privacy_loss import epsilon_of
from ..digits import index_of, number
from .pure_votes import PureVotes
from .votes import Votes

_GAUSSIAN = FILTERS["gaussian"]
_STEP = 10**6


@dataclass(frozen=True)
class Rounds:
    """The budgets of two releases of votes, fixed before the first: epsilons at one delta.

    Guarantee:
        Both releases together are (epsilon, delta)-differentially private at `epsilon`, for a
        document or a user whose votes are in both, whatever the second one's pool is, if it is
        a function of the first release and of public knowledge.
        Solved for a budget, they are so at that budget.

    The noise of each is Gaussian, and two Gaussians whose noise was fixed beforehand are one, of
    the sum of their rhos, though the second is chosen in the light of the first
    (`mechanisms.accounting.filters`). So each has the whole delta, and the epsilons add up to more
    than `epsilon`.

    Attributes:
        first: epsilon of the first release.
        second: epsilon of the second.
        delta: of each release, and of both.
    """

    first: Fraction
    second: Fraction
    delta: Fraction

    @classmethod
    def solved(cls, epsilon: Fraction, delta: Fraction, share: Fraction) -> Rounds:
        """Find the largest epsilon of the second release, in steps of the noise's 4 digits.

        `epsilon` and `delta` are of both; `share`, between 0 and 1, is the first one's share of
        `epsilon`, which is rounded down to six decimals. Raises ValueError as `Votes` does for
        noise, and if nothing is left for the second.
        """
        first = _rounded_down(epsilon * share)
        most = largest_rho(_GAUSSIAN.curve, epsilon, delta)
        left = most - _cost(first, delta).rho
        if left <= 0:
            raise ValueError("the first release leaves nothing for the second; give it less")
        index = index_of(Fraction(math.isqrt(math.floor(_STEP**2 / (2 * left))), _STEP))
        while rho_of(number(index)) > left:
            index += 1
        found = cls(first, epsilon_of(Fraction(1), number(index), 1, delta), delta)
        found.noise_multipliers  # noqa: B018
        return found

    @property
    def epsilon(self) -> Fraction:
        """Return the epsilon of both together at `delta`."""
        spent = _cost(self.first, self.delta) + _cost(self.second, self.delta)
        return _GAUSSIAN.epsilon(spent.rho, self.delta)

    @property
    def noise_multipliers(self) -> tuple[Fraction, Fraction]:
        """Return the noise multiplier of each release."""
        first, second = (Votes(1, one, self.delta).noise for one in (self.first, self.second))
        return first.noise_multiplier, second.noise_multiplier


@dataclass(frozen=True)
class PureRounds:
    """The budgets of two releases of votes under geometric noise, fixed before the first.

    Guarantee:
        Both releases together are epsilon-differentially private at `epsilon`, with a delta of
        zero, for a document or a user whose votes are in both, whatever the second one's pool is,
        if it is a function of the first release and of public knowledge.
        Solved for a budget, they are so at that budget.

    Epsilons of pure differential privacy add up. A document that votes in both can lose all of
    their sum, so that no smaller epsilon holds at a delta of zero.

    Attributes:
        first: epsilon of the first release.
        second: epsilon of the second.
    """

    first: Fraction
    second: Fraction

    @classmethod
    def solved(cls, epsilon: Fraction, share: Fraction) -> PureRounds:
        """Give the first release its share of `epsilon`, and the second the rest.

        Both are rounded down to six decimals. Raises ValueError for noise that cannot be drawn,
        where documents vote for one text.
        """
        first = _rounded_down(epsilon * share)
        found = cls(first, _rounded_down(epsilon - first))
        for one in (found.first, found.second):
            PureVotes(1, one)
        return found

    @property
    def epsilon(self) -> Fraction:
        """Return the epsilon of both together."""
        return self.first + self.second


def rounds_at(epsilon: Fraction, delta: Fraction | None, share: Fraction) -> Rounds | PureRounds:
    """Split a budget under Gaussian noise, or under geometric noise for a delta of None.

    Raises ValueError for what either refuses.
    """
    if delta is None:
        return PureRounds.solved(epsilon, share)
    return Rounds.solved(epsilon, delta, share)


def _rounded_down(epsilon: Fraction) -> Fraction:
    """Round down to six decimals, which a person can give to a release."""
    return Fraction(math.floor(epsilon * _STEP), _STEP)


def _cost(epsilon: Fraction, delta: Fraction) -> Concentrated:
    """Return what the votes of a release cost under a filter, whatever they are for."""
    return Votes(1, epsilon, delta).concentrated
