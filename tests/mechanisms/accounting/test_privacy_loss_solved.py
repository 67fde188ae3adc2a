"""The noise, the rate and the share that keep to an epsilon, and no smaller noise does."""

from __future__ import annotations

from fractions import Fraction

import dp_accounting
import pytest
from dp_events import DELTA, ONE, deltas, noises, rates
from hypothesis import given, settings
from hypothesis import strategies as st

from quietcorpus.mechanisms.accounting.privacy_loss import (
    LARGEST_NOISE,
    SMALLEST_NOISE,
    epsilon_of,
    noise_multiplier_for,
    rate_for,
    share_for,
)
from quietcorpus.mechanisms.users.clipped_sum import ClippedSum


def step_down(value: Fraction) -> Fraction:
    """The next lower number of 4 significant digits; `value` is one of at most 4."""
    digits = f"{float(value):.3e}"
    assert Fraction(digits) == value
    unit = Fraction(10) ** (int(digits[6:]) - 3)
    return value - (unit / 10 if digits.startswith("1.000") else unit)


@pytest.mark.slow
@settings(max_examples=3)
@given(
    epsilon=st.fractions(Fraction(1, 2), 8, max_denominator=100),
    delta=deltas,
    rate=rates,
    steps=st.integers(1, 1000),
)
def test_noise_keeps_to_its_epsilon_and_less_does_not(
    epsilon: Fraction, delta: Fraction, rate: Fraction, steps: int
) -> None:
    # Kills: rounding to nearest, a search that ends on the wrong side, no check of the result.
    noise = noise_multiplier_for(epsilon, delta, rate, steps)
    assert epsilon_of(rate, noise, steps, delta) <= epsilon
    if noise > SMALLEST_NOISE:
        assert epsilon_of(rate, step_down(noise), steps, delta) > epsilon
    # And the rate that this noise allows is the rate that it was made for.
    assert rate_for(epsilon, delta, noise, steps, rate) == rate


@pytest.mark.slow
@settings(max_examples=3)
@given(
    epsilon=st.fractions(Fraction(1, 4), 4, max_denominator=100),
    delta=deltas,
    noise=noises,
    steps=st.integers(1, 2000),
)
def test_a_rate_keeps_to_its_epsilon_and_a_higher_one_does_not(
    epsilon: Fraction, delta: Fraction, noise: Fraction, steps: int
) -> None:
    most = Fraction(1, 7)
    rate = rate_for(epsilon, delta, noise, steps, most)
    assert 0 < rate <= most
    assert epsilon_of(rate, noise, steps, delta) <= epsilon
    if rate < most:
        higher = rate + Fraction(10) ** (int(f"{float(rate):.3e}"[6:]) - 3)
        assert step_down(higher) == rate
        assert higher > most or epsilon_of(higher, noise, steps, delta) > epsilon


@pytest.mark.slow
@given(
    epsilon=st.fractions(Fraction(1, 100), 20, max_denominator=1000),
    delta=deltas,
    noise=st.fractions(Fraction(1, 2), 64, max_denominator=1000),
)
def test_a_share_keeps_to_its_epsilon_and_a_larger_one_does_not(
    epsilon: Fraction, delta: Fraction, noise: Fraction
) -> None:
    # Kills: noise * share, and a share above 1, which nobody may be clipped to.
    share = share_for(epsilon, delta, noise)
    assert 0 < share <= 1
    assert epsilon_of(ONE, noise / share, 1, delta) <= epsilon
    if share < 1:
        larger = share + Fraction(10) ** (int(f"{float(share):.3e}"[6:]) - 3)
        assert epsilon_of(ONE, noise / larger, 1, delta) > epsilon


@pytest.mark.parametrize(("epsilon", "delta"), [("1", "1e-5"), ("0.5", "1e-8"), ("8", "1e-6")])
def test_unsampled_noise_is_the_analytic_gaussian(epsilon: str, delta: str) -> None:
    found = noise_multiplier_for(Fraction(epsilon), Fraction(delta), ONE, 1)
    exact = dp_accounting.get_sigma_gaussian(float(epsilon), float(delta))
    assert exact <= found <= exact * 1.0011


def test_the_noise_that_is_looked_for_can_be_drawn() -> None:
    for noise in (SMALLEST_NOISE, LARGEST_NOISE):
        ClippedSum(noise)
    with pytest.raises(ValueError, match="standard deviation"):
        ClippedSum(LARGEST_NOISE + Fraction(1, 100))


def test_a_target_beyond_reach_is_refused() -> None:
    with pytest.raises(ValueError, match="no noise multiplier up to 64 keeps 10 steps at"):
        noise_multiplier_for(Fraction(1, 100), DELTA, ONE, 10)
    assert rate_for(Fraction(1, 10**9), Fraction(1, 10**12), ONE, 1000, ONE) == 0
    assert share_for(Fraction(1, 10**9), Fraction(1, 10**12), ONE) == 0


def test_a_target_that_little_noise_meets() -> None:
    assert noise_multiplier_for(Fraction(500), DELTA, ONE, 1) == SMALLEST_NOISE


def test_a_rate_just_below_the_most() -> None:
    # Kills: a search that starts below the first rate of 4 digits that may do.
    rate, most = Fraction("0.1234"), Fraction("0.123499")
    between = epsilon_of(rate, Fraction(3), 10, DELTA)
    assert epsilon_of(most, Fraction(3), 10, DELTA) > between
    assert rate_for(between, DELTA, Fraction(3), 10, most) == rate


def test_a_rate_below_the_least_is_kept() -> None:
    tiny = Fraction(1, 10**12)
    assert rate_for(ONE, DELTA, ONE, 1, tiny) == tiny
    assert rate_for(Fraction(1, 10**9), Fraction(1, 10**30), ONE, 1, tiny) == 0
