"""Computed losses, against closed forms and enumeration."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from dp_accounting import get_epsilon_gaussian

from quietcorpus.evaluation.audits.exact import (
    Unresolved,
    draws_loss,
    epsilon_recomputed,
    log_masses,
    loss,
    noise_masses,
    shift_loss,
    upper_tail,
)
from quietcorpus.mechanisms.accounting.privacy_loss import epsilon_of
from quietcorpus.mechanisms.noise.exact import Bounds, Law, TwoSided, exp_bounds
from quietcorpus.mechanisms.noise.exponential import ExponentialMechanism
from quietcorpus.mechanisms.noise.geometric import DenseNoise, SparseNoise, TwoSidedGeometric
from quietcorpus.mechanisms.words.brr import flip_bounds

RATES = [Fraction(1, 1000), Fraction(3, 4), Fraction(12)]


def test_the_loss_of_two_laws() -> None:
    # Kills: one direction alone, a sum for the largest, impossible outcomes counted.
    one, other = np.array([0.5, 0.3, 0.2, 0.0]), np.array([0.5, 0.1, 0.4, 0.0])
    assert loss(one, other) == pytest.approx(math.log(3))
    assert loss(other, one) == pytest.approx(math.log(3))
    assert loss(one, one) == 0
    assert loss(one, np.array([0.5, 0.3, 0.1, 0.1])) == math.inf


@pytest.mark.parametrize("rate", RATES, ids=str)
@pytest.mark.parametrize("kind", [DenseNoise, SparseNoise])
def test_masses_are_those_of_the_definition(
    kind: type[DenseNoise] | type[SparseNoise], rate: Fraction
) -> None:
    # tanh(rate / 2) exp(-rate |z|). Kills: outcomes for indices, the sparse law's zero, bounds that
    # do not close in where the mass is 10^-150.
    masses = noise_masses(kind(rate, 4), 30)
    assert set(range(-29, 30)) <= set(masses)
    for value, (low, high) in masses.items():
        expected = math.log(math.tanh(rate / 2)) - float(rate) * abs(value)
        assert low <= high
        assert low == pytest.approx(expected, abs=1e-9)
        assert high == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("rate", RATES, ids=str)
@pytest.mark.parametrize("least", [1, 2, 50])
def test_the_tail_of_noise(rate: Fraction, least: int) -> None:
    # a^k / (1 + a). Kills: both tails, an index off by one, a bound from below.
    expected = math.exp(-rate * least) / (1 + math.exp(-rate))
    found = upper_tail(DenseNoise(rate, 1).law, least, 4096)
    assert float(found) == pytest.approx(expected, rel=1e-12)
    assert found >= Fraction(TwoSidedGeometric(rate).tail(least, 4200)[0], 1 << 4200)


class Never(TwoSided):
    """No noise at all."""

    def survival(self, index: int, bits: int) -> Bounds:
        return 0, 0


def test_no_noise_costs_everything() -> None:
    # Kills: bits without end for an outcome that never comes, and ratios of two of them.
    masses = log_masses(Never(), 9)
    assert masses[0] == (0, 0)
    assert masses[1] == (-math.inf, -math.inf)
    assert shift_loss(masses, 2) == math.inf


def test_flips_by_their_digits() -> None:
    # Kills: digits in another order, bits of another number, a bound that is not one.
    for epsilon, bits in ((Fraction(1, 3), 128), (Fraction(5), 64), (Fraction(5), 41)):
        low, high = flip_bounds(epsilon, bits)
        expected = 1 / (1 + math.exp(epsilon))
        assert high == low + 1
        assert low / 2**bits == pytest.approx(expected, rel=1e-9)
        wide, _ = flip_bounds(epsilon, bits + 100)
        assert wide >> 100 == low


@pytest.mark.parametrize("rate", RATES, ids=str)
@pytest.mark.parametrize("most", [1, 3, 20])
def test_a_shift_of_geometric_noise_costs_its_rate(rate: Fraction, most: int) -> None:
    # Kills: the least ratio, a shift of one alone without its factor.
    for noise in (DenseNoise(rate, 4), SparseNoise(rate, 4)):
        found = shift_loss(noise_masses(noise, most + 8), most)
        assert found == pytest.approx(most * float(rate), rel=1e-9)


@dataclass(frozen=True)
class Table(Law):
    """Whole numbers with these chances."""

    chances: tuple[Fraction, ...]

    def survival(self, index: int, bits: int) -> Bounds:
        above = sum(self.chances[index + 1 :], start=Fraction(0)) * (1 << bits)
        return math.floor(above), math.ceil(above)


def test_a_shift_that_costs_more_than_its_share() -> None:
    # A law whose worst shift is 2: what N = 4 costs is two such shifts, in two numbers. Kills: the
    # loss of the largest shift alone (log 4 for 4 of them), of the smallest alone.
    chances = [Fraction(4, 10), Fraction(2, 10), Fraction(1, 10), Fraction(2, 10), Fraction(1, 10)]
    masses = log_masses(Table(tuple(chances)), 5)
    worst = max(
        abs(math.log(chances[i] / chances[j])) / abs(i - j)
        for i, j in itertools.permutations(range(5), 2)
        if abs(i - j) <= 2
    )
    assert shift_loss(masses, 4) == pytest.approx(4 * worst)


@pytest.mark.parametrize("rate", [Fraction(1, 3), Fraction(9)])
def test_the_loss_of_draws_by_weights(rate: Fraction) -> None:
    # Against floats. Kills: gaps below the wrong best, normalising by the other's total.
    weights = [exp_bounds(rate * gap, 200) if gap else (1 << 200,) * 2 for gap in range(9)]
    one, other = [0, 3, 3, 7, 1], [1, 2, 4, 8, 0]
    chances = [np.exp(float(rate) * np.array(u)) for u in (one, other)]
    expected = loss(*(c / c.sum() for c in chances))
    assert draws_loss(weights, one, other) == pytest.approx(expected, rel=1e-9)
    assert draws_loss(weights, one, one) == pytest.approx(0, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [Fraction(1, 100), 1, 50, 100, 1000])
def test_a_correct_draw_keeps_its_promise_at_any_epsilon(epsilon: Fraction) -> None:
    # Kills: weights of so few bits that the least of them are lost, and look like impossible ones.
    law = ExponentialMechanism(Fraction(epsilon), 1).law
    weights = [law.survival(gap, 8192) for gap in range(6)]
    found = draws_loss(weights, [0, 5, 4], [0, 4, 5])
    assert 0 < found <= float(epsilon) * (1 + 1e-9)


@pytest.mark.slow
def test_what_would_take_too_many_bits_is_not_computed() -> None:
    # Kills: bits that are doubled for minutes.
    with pytest.raises(Unresolved):
        log_masses(TwoSidedGeometric(Fraction(10**6)), 9)


def test_weights_that_end_make_the_loss_infinite() -> None:
    # Kills: a table that is cut off taken for a small probability.
    assert draws_loss([(8, 8), (4, 4)], [0, 1], [0, 2]) == math.inf


@pytest.mark.parametrize("noise", [0.5, 1.0, 4.0])
def test_one_gaussian_costs_what_its_curve_says(noise: float) -> None:
    # Theorem 8 of Balle and Wang. Kills: an upper bound for a lower one, delta at the wrong place.
    exact = get_epsilon_gaussian(noise, 1e-6)
    assert 0.999 * exact <= epsilon_recomputed(1.0, noise, 1, 1e-6) <= exact * (1 + 1e-9)


@pytest.mark.parametrize(
    ("noise", "steps", "delta", "exact"),
    [
        (1.0, 1, 1e-12, 7.23849442),
        (1.0, 1, 1e-15, 8.1655797),
        (4.0, 1, 1e-18, 2.11776191),
        (0.5, 1, 1e-300, 75.93375),
        (20.0, 100, 1e-14, 3.76753002),
        (50.0, 3000, 1e-15, 9.00839367),
        (50.0, 3000, 1e-100, 23.7485104),
    ],
)
def test_gaussians_at_small_deltas(noise: float, steps: int, delta: float, exact: float) -> None:
    # The curve in 60 digits (mpmath 1.3). Kills: 9.79 for 9.01 at a delta of 1e-15, and infinity
    # below: a correct mechanism that an audit calls broken.
    found = epsilon_recomputed(1.0, noise, steps, delta)
    assert 0.99999 * exact < found < exact
    stated = epsilon_of(Fraction(1), Fraction(noise), steps, Fraction(delta))
    assert exact < float(stated) < 1.0001 * exact


@pytest.mark.parametrize("delta", ["1e-13", "1e-15", "1e-16", "1e-30"])
def test_sampled_gaussians_at_small_deltas(delta: str) -> None:
    # Kills: 6.11 where 5.25 is stated, and infinity below 1e-16.
    rate, noise, steps = Fraction(1, 2), Fraction(2), 3
    stated = epsilon_of(rate, noise, steps, Fraction(delta))
    assert 4.5 < epsilon_recomputed(0.5, 2.0, steps, float(delta)) < stated


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rate", "noise", "steps"),
    [(Fraction(1, 10), Fraction(1), 100), (Fraction(1, 4), Fraction(3), 20)],
)
def test_the_second_account_is_just_below_the_first(
    rate: Fraction, noise: Fraction, steps: int
) -> None:
    # Kills: steps or sampling left out on either side; and noise of two thirds is above.
    delta = Fraction(1, 10**5)
    stated = float(epsilon_of(rate, noise, steps, delta))
    found = epsilon_recomputed(float(rate), float(noise), steps, float(delta))
    assert 0.98 * stated < found <= stated
    assert epsilon_recomputed(float(rate), float(noise) * 2 / 3, steps, float(delta)) > 1.3 * stated
