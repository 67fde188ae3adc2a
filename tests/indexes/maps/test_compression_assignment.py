"""Clusters of equal size: the optimal choice against all choices and SciPy's, and its limit."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from quietcorpus.indexes.maps import compression
from quietcorpus.indexes.maps.compression import Assignment, assign


def squares(points: np.ndarray, centroids: np.ndarray) -> np.ndarray:
    return ((points[:, None].astype(float) - centroids) ** 2).sum(axis=2)


def loss(points: np.ndarray, centroids: np.ndarray, chosen: np.ndarray) -> float:
    return float(squares(points, centroids)[np.arange(len(points)), chosen].sum())


def rooms(terms: int, clusters: int) -> list[int]:
    return [terms // clusters + (cluster < terms % clusters) for cluster in range(clusters)]


def drawn(seed: int, terms: int, clusters: int) -> tuple[np.ndarray, np.ndarray]:
    """Clumps of points of unlike sizes: many want the same centroid, and some are equal."""
    generator = np.random.default_rng(seed)
    centroids = generator.normal(size=(clusters, 3)).astype(np.float32)
    near = generator.geometric(0.5, terms) % clusters
    points = centroids[near] + generator.normal(
        scale=generator.choice([0, 0.3, 3]), size=(terms, 3)
    )
    return points.astype(np.float32), centroids


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), terms=st.integers(1, 7), data=st.data())
def test_no_choice_is_better(seed: int, terms: int, data: st.DataObject) -> None:
    # Kills: the greedy choice for the optimal one, a chain of moves that is not the shortest,
    # clusters of other sizes.
    clusters = data.draw(st.integers(1, terms))
    points, centroids = drawn(seed, terms, clusters)
    chosen = assign(points, centroids, Assignment.OPTIMAL)
    assert np.bincount(chosen, minlength=clusters).tolist() == rooms(terms, clusters)
    full = np.repeat(np.arange(clusters), rooms(terms, clusters))
    costs = squares(points, centroids)
    least = min(costs[range(terms), one].sum() for one in set(itertools.permutations(full)))
    assert loss(points, centroids, chosen) == pytest.approx(least, abs=1e-5)


@pytest.mark.parametrize(
    ("terms", "clusters"), [pytest.param(200, 7, marks=pytest.mark.slow), (200, 60), (150, 150)]
)
def test_the_hungarian_method_finds_nothing_better(terms: int, clusters: int) -> None:
    # Kills: losses of a cluster that are not computed anew after a move.
    points, centroids = drawn(terms + clusters, terms, clusters)
    copies = np.repeat(np.arange(clusters), rooms(terms, clusters))
    _, best = linear_sum_assignment(squares(points, centroids)[:, copies])
    chosen = assign(points, centroids, Assignment.OPTIMAL)
    assert np.bincount(chosen, minlength=clusters).tolist() == rooms(terms, clusters)
    least = loss(points, centroids, copies[best])
    assert loss(points, centroids, chosen) == pytest.approx(least, rel=1e-6)
    # The negative control: on such clumps the greedy choice is worse.
    greedy = assign(points, centroids, Assignment.GREEDY)
    assert np.bincount(greedy, minlength=clusters).tolist() == rooms(terms, clusters)
    assert loss(points, centroids, greedy) > least * (1 + 1e-6)


def test_equal_points_are_shared_out() -> None:
    # Kills: a division by the largest difference, where there is none.
    same = np.ones((10, 3), np.float32)
    chosen = assign(same, np.zeros((4, 3), np.float32), Assignment.OPTIMAL)
    assert np.bincount(chosen).tolist() == [3, 3, 2, 2]


def test_the_optimal_choice_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    # Kills: terabytes asked for.
    monkeypatch.setattr(compression, "MOST_DISTANCES", 20)
    points, centroids = drawn(1, 7, 3)
    with pytest.raises(ValueError, match="7 vectors times 3 clusters are above 20"):
        assign(points, centroids, Assignment.OPTIMAL)
    assign(points, centroids, Assignment.GREEDY)
