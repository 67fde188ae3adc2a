"""Norms by budget: what a group's users may add, at the noise that all users share."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest

from quietcorpus.mechanisms.accounting.privacy_loss import epsilon_of
from quietcorpus.mechanisms.users.clipped_sum import STEPS
from quietcorpus.mechanisms.users.group_norms import GroupNorms, norm_of_group

DELTA = Fraction(1, 10**6)
BUDGETS = {"none": Fraction(1, 10**9), "low": Fraction(1, 2), "high": Fraction(2)}


def delta_of(noise: Fraction, epsilon: Fraction) -> mpmath.mpf:
    """The Gaussian mechanism's delta (Balle and Wang 2018, theorem 8), in 50 digits."""
    with mpmath.workdps(50):
        s = mpmath.mpf(noise.numerator) / noise.denominator
        e = mpmath.mpf(epsilon.numerator) / epsilon.denominator
        return mpmath.ncdf(1 / (2 * s) - e * s) - mpmath.exp(e) * mpmath.ncdf(-1 / (2 * s) - e * s)


def test_every_group_keeps_to_its_budget() -> None:
    # Kills: the whole norm for everybody, a norm that is rounded up, a share of the budget in
    # place of a share of the norm (half of 2 would give 256 at epsilon 1/2).
    norms = GroupNorms.solved(BUDGETS, DELTA)
    assert norms.most["high"] == STEPS
    assert 0 < norms.most["low"] < STEPS / 2
    assert norms.most["none"] == 0
    assert norms.idle == ["none"]
    assert list(norms.most) == list(BUDGETS)
    for name in ("low", "high"):
        noise = norms.noise_multipliers[name]
        assert noise * norms.most[name] == norms.mechanism.deviation
        assert delta_of(noise, BUDGETS[name]) <= 1e-6
        assert norms.spent[name] == epsilon_of(Fraction(1), noise, 1, DELTA) <= BUDGETS[name]
    longer = norms.mechanism.deviation / (norms.most["low"] + 1)
    assert delta_of(longer, BUDGETS["low"]) > 1e-6
    assert norms.spent["none"] == 0
    assert "none" not in norms.noise_multipliers


def test_the_noise_is_for_the_largest_budget() -> None:
    # Kills: noise for the smallest, by which most of a large budget is lost.
    alone = GroupNorms.solved({"": Fraction(2)}, DELTA)
    assert alone.mechanism == GroupNorms.solved(BUDGETS, DELTA).mechanism
    assert alone.most == {"": STEPS}
    with pytest.raises(ValueError, match="no noise multiplier"):
        GroupNorms.solved({"": Fraction(1, 1000)}, DELTA)


def test_who_has_no_budget_has_no_norm() -> None:
    # Kills: Python's own -1, at which users without a budget would have the largest norm.
    assert [norm_of_group(group, (0, 7, STEPS)) for group in range(3)] == [0, 7, STEPS]
    for group in (-1, 3):
        with pytest.raises(ValueError, match="no budget"):
            norm_of_group(group, (0, 7, STEPS))
