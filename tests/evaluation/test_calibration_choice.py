"""Which setting is best: the confidence that is stated, and the power to leave others out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from quietcorpus.evaluation.calibration import choose

TRIALS, CONFIDENCE = 4000, 0.9
MOST_MISSED = int(stats.binom.isf(1e-6, TRIALS, 1 - CONFIDENCE))


def drawn(means: np.ndarray, runs: int, generator: np.random.Generator) -> np.ndarray:
    common = generator.normal(0, 5, runs)
    return means[:, None] + common + generator.normal(0, 1, (len(means), runs))


@pytest.mark.slow
@pytest.mark.parametrize("gaps", [[0.0] * 6, [0.0, 0.5, 0.5, 1.0, 2.0]])
@pytest.mark.parametrize("runs", [2, 4])
def test_the_best_is_among_them_as_often_as_stated(gaps: list[float], runs: int) -> None:
    # Kills: a margin without Bonferroni or with a wrong deviation. Setting 0 is the best.
    generator, means = np.random.default_rng(), -np.array(gaps)
    found = [choose(drawn(means, runs, generator), CONFIDENCE) for _ in range(TRIALS)]
    assert sum(0 not in choice.among for choice in found) <= MOST_MISSED


def test_less_confidence_is_too_little() -> None:
    # The control: settings that are all alike, of which the best is missed too often.
    generator = np.random.default_rng()
    found = [choose(drawn(np.zeros(6), 4, generator), 0.5) for _ in range(TRIALS)]
    assert sum(0 not in choice.among for choice in found) > MOST_MISSED


def test_settings_may_vary_differently() -> None:
    # Kills: a variance that all share, by which the best, if it varies most, is missed too often.
    generator = np.random.default_rng()
    deviations = np.array([1.0, *[0.1] * 10])[:, None]
    scores = generator.normal(0, 1, (TRIALS, 11, 3)) * deviations
    missed = sum(0 not in choose(own).among for own in scores)
    most = int(stats.binom.isf(1e-6, TRIALS, 0.05))
    assert missed <= most
    margin = stats.t.isf(0.05 / 10, 20) * np.sqrt((deviations**2).mean() * 2 / 3)
    means = scores.mean(axis=2)
    assert (means[:, 0] < means.max(axis=1) - margin).sum() > most


def test_what_all_settings_of_a_run_share_hides_nothing() -> None:
    # The power: a large gap is told in three runs, whose own levels differ.
    generator = np.random.default_rng()
    choice = choose(drawn(np.array([0.0, 1e6, 0.0]), 3, generator))
    assert choice.best == 1
    assert choice.among == (1,)


def test_one_setting_is_the_best() -> None:
    assert choose(np.array([[0.2, 0.3]])) == (0, (0,))
