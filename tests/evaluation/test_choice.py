"""Which setting is best: the confidence that is stated, and the power to leave others out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from evaluation.choice import choose

TRIALS, CONFIDENCE = 4000, 0.9
MOST_MISSED = int(stats.binom.isf(1e-6, TRIALS, 1 - CONFIDENCE))


def drawn(means: np.ndarray, runs: int, generator: np.random.Generator) -> np.ndarray:
    common = generator.normal(0, 5, runs)
    return means[:, None] + common + generator.normal(0, 1, (len(means), runs))


@pytest.mark.parametrize("gaps", [[0.0] * 6, [0.0, 0.5, 0.5, 1.0, 2.0]])
@pytest.mark.parametrize("runs", [2, 4])
def test_the_best_is_among_them_as_often_as_stated(gaps: list[float], runs: int) -> None:
    # Kills: a margin without Bonferroni or with a wrong deviation. Setting 0 is the best.
    generator, means = np.random.default_rng(), -np.array(gaps)
    found = [choose(drawn(means, runs, generator), CONFIDENCE) for _ in range(TRIALS)]
    assert sum(0 not in choice.among for choice in found) <= MOST_MISSED


def test_half_of_the_margin_is_too_little() -> None:
    # The control: with settings that are all alike the best is missed too often, by any margin
    # that is markedly smaller.
    generator = np.random.default_rng()
    missed = 0
    for _ in range(TRIALS):
        scores = drawn(np.zeros(6), 4, generator)
        choice, means = choose(scores, CONFIDENCE), scores.mean(axis=1)
        missed += means[0] < means[choice.best] - choice.margin / 2
    assert missed > MOST_MISSED


def test_what_all_settings_of_a_run_share_hides_nothing() -> None:
    # The power: gaps of eight deviations are told in three runs whose levels differ by far more.
    generator = np.random.default_rng()
    choice = choose(drawn(np.array([0.0, 30.0, 0.0]), 3, generator))
    assert choice.best == 1
    assert choice.among == (1,)


def test_one_setting_is_the_best() -> None:
    assert choose(np.array([[0.2, 0.3]])) == (0, (0,), 0.0)
