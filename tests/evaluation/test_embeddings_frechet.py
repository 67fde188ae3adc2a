"""The Fréchet distance against the textbook formula, by another algorithm and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import sqrtm

from quietcorpus.evaluation.embeddings import Moments, frechet_distance


def points(count: int, shift: float = 0.0) -> np.ndarray:
    generator = np.random.default_rng()
    mixed = generator.normal(size=(5, 5))
    return generator.normal(size=(count, 5)) @ mixed + shift


def moments(some: np.ndarray) -> Moments:
    return Moments.of(some, np.ones(len(some)))


def test_it_is_that_of_the_formula_by_a_matrix_square_root() -> None:
    # SciPy's sqrtm of the product, which is not symmetric (Schur). Kills: a root of either alone,
    # one root of two, a lost mean, covariances of samples for one side.
    one, other = points(300), points(200, 0.5)
    c, d = (np.cov(some, rowvar=False, bias=True) for some in (one, other))
    gap = ((one.mean(axis=0) - other.mean(axis=0)) ** 2).sum()
    expected = gap + np.trace(c + d - 2 * np.real(sqrtm(c @ d)))
    assert frechet_distance(moments(one), moments(other)) == pytest.approx(expected)
    assert frechet_distance(moments(other), moments(one)) == pytest.approx(expected)


def test_it_is_as_by_hand_where_directions_are_apart() -> None:
    # In one dimension: (m - n)^2 + (s - t)^2. Kills: variances for deviations.
    one = Moments(np.array([1.0, 0]), np.diag([4.0, 9]))
    other = Moments(np.array([0.0, 2]), np.diag([1.0, 25]))
    assert frechet_distance(one, other) == pytest.approx(1 + 4 + 1 + 4)


def test_a_weight_is_so_many_points() -> None:
    # Kills: weights for the mean alone, or by their square; points of no weight that count.
    some, counts = points(20), np.arange(20)
    weighted, repeated = Moments.of(some, counts / 7), moments(np.repeat(some, counts, axis=0))
    np.testing.assert_allclose(weighted.mean, repeated.mean)
    np.testing.assert_allclose(weighted.covariance, repeated.covariance)


def test_a_distribution_has_no_distance_from_itself() -> None:
    # Of fewer points than dimensions, too, where a covariance has no inverse.
    for count in (2, 500):
        own = moments(points(count))
        assert 0 <= frechet_distance(own, own) < 1e-6
