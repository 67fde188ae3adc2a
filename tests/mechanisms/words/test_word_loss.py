"""Tests of the law of one word's privacy loss against its geometry, and closed forms."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import betaln, gammainc

from quietcorpus.mechanisms.words.word_loss import Floats, upper_masses

CELLS = 4000
DIMENSIONS = 2, 3, 4, 7, 50, 300
REACHES = 0.3, 9.0, 90.0


def exceeds(dimensions: int, reach: float, loss: float) -> float:
    """Compute P(||z - a e|| - ||z|| > t) by an integral over the angle between z and e.

    Along a direction of cosine u the loss exceeds t as long as ||z|| < (a^2 - t^2) / (2 (a u + t)),
    and always where a u + t <= 0; ||z|| has a Gamma law. Nothing of it is in the module's formulas.
    """
    power = dimensions - 2
    scale = -betaln((dimensions - 1) / 2, 0.5)

    def part(angle: float) -> float:
        towards = reach * math.cos(angle) + loss
        within = 1.0 if towards <= 0 else gammainc(dimensions, (reach**2 - loss**2) / (2 * towards))
        return within * math.exp(scale) * math.sin(angle) ** power

    turn = math.acos(-loss / reach)
    cuts = np.unique([0, *np.linspace(0, math.pi, 41), turn])
    pieces = [quad(part, low, high, epsabs=0, epsrel=1e-11)[0] for low, high in pairwise(cuts)]
    return float(sum(pieces))


def survival(masses: Floats) -> Floats:
    """Return P(T > edge) for every edge but the first."""
    return np.cumsum(masses[::-1])[::-1][1:]


@pytest.mark.parametrize("reach", REACHES)
@pytest.mark.parametrize("dimensions", DIMENSIONS)
def test_no_probability_is_understated_and_none_by_much_overstated(
    dimensions: int, reach: float
) -> None:
    # Kills: another D or distance (below), a lower edge for an upper one, a chord for a tangent.
    found = survival(upper_masses(dimensions, reach, CELLS))
    edges = np.linspace(-reach, reach, CELLS + 1)[1:-1]
    for place in range(99, CELLS - 1, 300):
        exact = exceeds(dimensions, reach, edges[place])
        if exact < 1e-200:
            continue
        assert found[place] >= exact * (1 - 1e-10)
        assert found[place] <= min(1, exact * 1.01) or exact < 1e-30


@pytest.mark.parametrize("cells", [8, 15, 30])
@pytest.mark.parametrize("dimensions", DIMENSIONS)
def test_coarse_cells_understate_nothing(dimensions: int, cells: int) -> None:
    # Kills: a cell's density at its middle, taken for a bound of its mass.
    for reach in REACHES:
        found = survival(upper_masses(dimensions, reach, cells))
        edges = np.linspace(-reach, reach, cells + 1)[1:-1]
        exact = [exceeds(dimensions, reach, edge) for edge in edges]
        assert np.all(found >= np.array(exact) * (1 - 1e-10))


@pytest.mark.parametrize(("dimensions", "reach"), [(297, 90.0), (303, 90.0), (300, 89.0)])
def test_another_law_is_seen(dimensions: int, reach: float) -> None:
    # A negative control: a wrong dimension or distance is nowhere near the tolerance above.
    exact = exceeds(300, 90.0, 45.0)
    found = survival(upper_masses(dimensions, reach, CELLS))
    place = round((45.0 + reach) / (2 * reach) * CELLS) - 1
    assert not exact <= found[place] <= exact * 1.01


@pytest.mark.parametrize("reach", REACHES)
def test_one_dimension_is_laplace(reach: float) -> None:
    found = survival(upper_masses(1, reach, CELLS))
    edges = np.linspace(-reach, reach, CELLS + 1)[1:-1]
    assert found == pytest.approx(1 - np.exp(-(reach - edges) / 2) / 2, rel=1e-12)
    assert upper_masses(1, reach, CELLS).sum() == pytest.approx(1, rel=1e-12)


def test_three_dimensions_have_a_closed_form() -> None:
    # exp(a tau / 2) (r + 1 - tau^2), and K_(3/2)(x) / K_(1/2)(x) = 1 + 1 / x.
    reach = 4.0
    rest = 4 / reach * (1 + 2 / reach) + 1

    def area(tau: float) -> float:
        return math.exp(2 * tau) * ((rest - tau**2) / 2 + tau / 2 - 1 / 4)

    found = survival(upper_masses(3, reach, CELLS))
    edges = np.linspace(-1, 1, CELLS + 1)[1:-1]
    exact = [(area(1) - area(tau)) / (area(1) - area(-1)) for tau in edges]
    assert np.all(found >= np.array(exact) * (1 - 1e-12))
    assert found == pytest.approx(exact, rel=1e-5)


@pytest.mark.parametrize("dimensions", [*DIMENSIONS, 1000])
def test_masses_are_a_law(dimensions: int) -> None:
    for reach in (1e-6, *REACHES, 1e4, 1e7, 1e10):
        masses = upper_masses(dimensions, reach, 999)
        assert np.all(masses >= 0)
        assert masses.sum() == pytest.approx(1, rel=1e-12)


def test_both_directions_have_one_law() -> None:
    # The density of the loss t is exp(t) times that of -t: what makes one direction enough.
    masses = upper_masses(300, 9.0, 1800)
    losses = np.linspace(-9, 9, 1801)[1:] - 0.005
    inner = slice(800, 1000)
    ratios = masses[inner] / masses[::-1][inner]
    assert ratios == pytest.approx(np.exp(losses[inner]), rel=1e-4)
