"""The epsilon of a sum of rhos, against independent computations of both curves."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

from quietcorpus.mechanisms.accounting.concentrated import (
    Curve,
    gaussian_epsilon,
    largest_rho,
    rho_of,
    rounded_up,
    zcdp_epsilon,
)

MILLIONTH = Fraction(1, 10**6)
RHOS = st.builds(Fraction, st.integers(1, 5 * 10**6), st.just(10**6))
DELTAS = st.builds(lambda power: Fraction(1, 10**power), st.integers(2, 15))
CURVES = pytest.mark.parametrize("curve", [zcdp_epsilon, gaussian_epsilon])


def by_orders(rho: float, delta: float) -> float:
    """Proposition 12 of Canonne, Kamath and Steinke, at the best order that SciPy finds."""

    def epsilon(power: float) -> float:
        order = 1 + math.exp(power)
        return rho * order + math.log1p(-1 / order) - math.log(order * delta) / (order - 1)

    return max(0.0, optimize.minimize_scalar(epsilon, bounds=(-8, 12), method="bounded").fun)


@settings(max_examples=60, deadline=None)
@given(rho=RHOS, delta=DELTAS)
def test_zcdp_is_the_best_order_and_never_less(rho: Fraction, delta: Fraction) -> None:
    # Kills: a term of the conversion that is lost, an order that is fixed, rounding down.
    found, expected = float(zcdp_epsilon(rho, delta)), by_orders(float(rho), float(delta))
    assert expected * (1 - 1e-9) <= found <= expected * (1 + 1e-6) + 1e-9


@settings(max_examples=40, deadline=None)
@given(rho=RHOS, delta=DELTAS)
def test_gaussian_is_the_exact_curve_and_never_less(rho: Fraction, delta: Fraction) -> None:
    # Kills: an approximation of the tail, one convergent for both bounds, rounding down.
    accountant = pytest.importorskip("dp_accounting")
    expected = accountant.get_epsilon_gaussian(1 / math.sqrt(2 * float(rho)), float(delta))
    found = float(gaussian_epsilon(rho, delta))
    assert found >= expected - 1e-11
    # From x = 1/2 on, which is where epsilon is about sqrt(2 rho) / 2.
    floor = math.sqrt(2 * float(rho)) / 2 + float(rho)
    assert found <= max(expected * (1 + 1e-9), floor) + 1e-9


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(rho=RHOS, delta=DELTAS)
def test_a_gaussian_costs_no_more_than_zcdp_says(rho: Fraction, delta: Fraction) -> None:
    # Kills: curves that are swapped.
    floor = math.sqrt(2 * float(rho)) / 2 + float(rho)
    zcdp = float(zcdp_epsilon(rho, delta))
    assert float(gaussian_epsilon(rho, delta)) <= max(zcdp, floor) + 1e-9


@pytest.mark.parametrize(
    ("releases", "gaussian", "zcdp"), [(1, 1.0, 1.08), (12, 4.0, 4.18), (52, 9.2, 9.68)]
)
def test_what_gaussian_releases_cost_together(releases: int, gaussian: float, zcdp: float) -> None:
    # Each is (1, 1e-6) alone. Kills: a rho of 1 / sigma^2, or of sigma for its square.
    accounting = pytest.importorskip("quietcorpus.mechanisms.accounting.privacy_loss")
    noise = accounting.noise_multiplier_for(Fraction(1), MILLIONTH, Fraction(1), 1)
    rho = releases * rho_of(noise)
    exact = accounting.epsilon_of(Fraction(1), noise, releases, MILLIONTH)
    found = gaussian_epsilon(rho, MILLIONTH)
    assert exact - Fraction(1, 10**4) <= found <= Fraction(str(gaussian))
    assert exact < zcdp_epsilon(rho, MILLIONTH) <= Fraction(str(zcdp))


@settings(max_examples=100, deadline=None)
@given(noise=st.fractions(Fraction(1, 10), 64, max_denominator=10**4))
def test_a_rho_is_rounded_up(noise: Fraction) -> None:
    # Kills: a rho that is rounded down, or to nearest.
    assert 0 <= rho_of(noise) - 1 / (2 * noise**2) < Fraction(1, 10**12)
    assert rounded_up(Fraction(1, 3)) == Fraction(333_333_333_334, 10**12)


@CURVES
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(4)])
def test_the_largest_rho_keeps_to_the_target(curve: Curve, epsilon: Fraction) -> None:
    # Kills: a cap that is one step too high, or far too low.
    rho = largest_rho(curve, epsilon, MILLIONTH)
    assert curve(rho, MILLIONTH) <= epsilon
    assert curve(rho + Fraction(1, 10**9), MILLIONTH) > epsilon


@CURVES
def test_numbers_out_of_range_are_refused(curve: Curve) -> None:
    assert curve(Fraction(0), MILLIONTH) == 0
    for rho, delta in ((-1, MILLIONTH), (1, Fraction(0)), (1, Fraction(1))):
        with pytest.raises(ValueError, match="rho is 0 or more"):
            curve(Fraction(rho), delta)
    with pytest.raises(ValueError, match="no noise"):
        largest_rho(curve, Fraction(1, 10**6), Fraction(1, 10**200))
