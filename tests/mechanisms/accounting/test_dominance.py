"""The Gaussian that covers a sampled training, against its own privacy curve."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ndtr

pytest.importorskip("dp_accounting")

from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism

from quietcorpus.mechanisms.accounting.concentrated import gaussian_epsilon, rho_of
from quietcorpus.mechanisms.accounting.dominance import dominating, of_schedule
from quietcorpus.mechanisms.accounting.filters import Concentrated
from quietcorpus.mechanisms.accounting.privacy_loss import Schedule

RATE, NOISE, STEPS, CHANCE = Fraction(1, 20), Fraction("1.844"), 50, Fraction(1, 10**8)


def curve(rho: float, epsilons: np.ndarray) -> np.ndarray:
    """P(S) - exp(s) Q(S) of two normals."""
    apart = math.sqrt(2 * rho)
    upper, lower = epsilons / apart - apart / 2, epsilons / apart + apart / 2
    return ndtr(-upper) - np.exp(epsilons) * ndtr(-lower)


def test_it_covers_the_training_at_every_epsilon_and_less_does_not() -> None:
    # Kills: a grid that is compared point by point, one direction alone, a delta that is not used
    # up; and a rho far too large.
    found = dominating(RATE, NOISE, STEPS, CHANCE)
    assert found is not None
    assert found.delta == CHANCE
    step = from_gaussian_mechanism(
        float(NOISE), sampling_prob=float(RATE), pessimistic_estimate=False
    )
    own = step.self_compose(STEPS)  # from below
    epsilons = np.linspace(0, 4, 4001)
    needed = np.asarray(own.get_delta_for_epsilon(epsilons))
    assert (needed <= 1e-8 + (1 - 1e-8) * curve(float(found.rho), epsilons) + 1e-12).all()
    less = 1e-8 + (1 - 1e-8) * curve(float(found.rho) * 0.97, epsilons)
    assert (needed > less + 1e-9).any()
    # What it says of delta is an upper bound on what the accountant says.
    delta = Fraction(1, 10**6)
    implied = gaussian_epsilon(found.rho, delta - CHANCE)
    assert float(implied) >= own.get_epsilon_for_delta(float(delta))


def test_without_sampling_it_is_exact() -> None:
    assert dominating(Fraction(1), NOISE, 9, CHANCE) == Concentrated(
        pytest.approx(9 * rho_of(NOISE)), Fraction(0)
    )
    for rate, steps in ((RATE, 0), (Fraction(0), STEPS)):
        assert dominating(rate, NOISE, steps, CHANCE) == Concentrated(Fraction(0))


def test_where_there_is_no_bound() -> None:
    # Little noise, and a delta that the transforms' errors exceed.
    assert dominating(RATE, Fraction(1, 20), STEPS, CHANCE) is None
    assert dominating(RATE, NOISE, STEPS, Fraction(1, 10**15)) is None


def test_a_schedule_costs_what_its_most_exposed_users_pay() -> None:
    # Kills: the cost of another group, of all steps once training stops earlier, or delta whole.
    delta, budgets = Fraction(1, 10**6), {"low": Fraction(1, 2), "high": Fraction(1)}
    rates = {"low": Fraction(1, 100), "high": RATE}
    schedule = Schedule.of(budgets, rates, NOISE, delta, STEPS)
    found = of_schedule(schedule, 20)
    assert found == dominating(RATE, NOISE, 20, delta / 100)
    assert found is not None
    assert found.delta == delta / 100
