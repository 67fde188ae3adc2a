"""The norms that users' vectors are clipped to, by their budgets, in one noisy sum of them all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ..accounting.concentrated import rho_of
from ..accounting.filters import Concentrated
from ..accounting.privacy_loss import epsilon_of, noise_multiplier_for, share_for
from .clipped_sum import STEPS, ClippedSum


@dataclass(frozen=True)
class GroupNorms:
    """One noise for all users, and a norm for each group of them that keeps to its budget.

    Attributes:
        mechanism: adds the noise, which is for users of the whole clipping norm.
        delta: of the release.
        most: by group, the norm of its users in whole numbers; 0 for a budget that buys none.

    Guarantee:
        The noisy sum is (epsilon, delta)-differentially private for adding or removing a user of a
        group whose vector is at most `most` of that group long: `spent` has the epsilon.
        Solved for budgets, no group has spent more than its budget.
        For a user of any group it is Gaussian of `concentrated` (`mechanisms.accounting.filters`).
    """

    mechanism: ClippedSum
    delta: Fraction
    most: Mapping[str, int]

    @classmethod
    def solved(cls, budgets: Mapping[str, Fraction], delta: Fraction) -> GroupNorms:
        """Find the least noise for the largest budget, and with it the other groups' norms.

        Raises ValueError as `noise_multiplier_for` does.
        """
        noise = noise_multiplier_for(max(budgets.values()), delta, Fraction(1), 1)
        most = {
            name: int(share_for(epsilon, delta, noise) * STEPS) for name, epsilon in budgets.items()
        }
        return cls(ClippedSum(noise), delta, most)

    @property
    def noise_multipliers(self) -> dict[str, Fraction]:
        """Return the noise's deviation divided by the norm, for each group that has one."""
        return {name: self.mechanism.deviation / most for name, most in self.most.items() if most}

    @property
    def spent(self) -> dict[str, Fraction]:
        """Return the epsilon of the users of each group."""
        noise = self.noise_multipliers
        return {
            name: epsilon_of(Fraction(1), noise[name], 1, self.delta) if most else Fraction(0)
            for name, most in self.most.items()
        }

    @property
    def concentrated(self) -> Concentrated:
        """Return the cost to the users of the largest norm, under a filter."""
        noise = self.noise_multipliers.values()
        return Concentrated(rho_of(min(noise)) if noise else Fraction(0))

    @property
    def idle(self) -> list[str]:
        """Return the groups whose users contribute nothing."""
        return [name for name, most in self.most.items() if not most]


def norm_of_group(group: int, most: Sequence[int]) -> int:
    """Return the norm of the group of this number, out of the norms of all groups.

    Raises ValueError for any other number: that of users without a budget is -1, at which Python
    would find the largest norm.
    """
    if not 0 <= group < len(most):
        raise ValueError(f"no norm is that of group {group}: its users have no budget")
    return most[group]
