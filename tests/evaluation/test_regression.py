"""Regression out of fold: against closed forms, and where there is nothing to learn."""

from __future__ import annotations

import math

import numpy as np
import pytest

from quietcorpus.evaluation.regression import MODELS, Model, correlation, out_of_fold, rmse


@pytest.mark.parametrize("model", MODELS)
def test_a_linear_number_is_learnt_and_noise_is_not(model: Model) -> None:
    # Kills: predictions in another order than the documents, learning from the tested fold (noise
    # would then be fitted), a scale of the numbers that is not undone.
    generator = np.random.default_rng(5)
    features = generator.normal(size=(400, 3))
    numbers = 1000 + 50 * features[:, 0] - 20 * features[:, 1]
    found = out_of_fold(features, numbers, 5, 1, model)
    assert correlation(numbers, found, 0.95)[0] > 0.95
    assert abs(found.mean() - 1000) < 10
    noise = generator.normal(size=400)
    unlearnt = out_of_fold(generator.normal(size=(400, 200)), noise, 5, 1, model)
    assert abs(correlation(noise, unlearnt, 0.95)[0]) < 0.2
    assert (out_of_fold(features, numbers, 5, 1, model) == found).all()


def test_ridge_is_the_closed_form() -> None:
    # Kills: another penalty, features or numbers that are not standardised by what is learnt from.
    from sklearn.model_selection import KFold

    generator = np.random.default_rng(6)
    features, numbers = generator.normal(3, 2, size=(60, 4)), generator.normal(7, 3, size=60)
    found = out_of_fold(features, numbers, 3, 9, "ridge")
    for rest, test in KFold(3, shuffle=True, random_state=9).split(features):
        centre, spread = features[rest].mean(axis=0), features[rest].std(axis=0)
        x, y = (features[rest] - centre) / spread, numbers[rest]
        z = (y - y.mean()) / y.std()
        weights = np.linalg.solve(x.T @ x + np.eye(4), x.T @ z)
        expected = (features[test] - centre) / spread @ weights * y.std() + y.mean()
        np.testing.assert_allclose(found[test], expected)


def test_scores_by_hand() -> None:
    truth, found = np.array([1.0, 2, 3, 4]), np.array([1.0, 2, 3, 8])
    value, low, high = rmse(truth, found, 0.95)
    assert value == pytest.approx(2)
    assert low < value < high
    value, low, high = correlation(truth, found, 0.95)
    assert value == pytest.approx(11 / math.sqrt(5 * 29))
    assert low < value < high
    assert correlation(truth, np.ones(4), 0.95)[0] == 0
    assert correlation(truth[:3], found[:3], 0.95)[1:] == (-1, 1)


def test_fishers_interval_covers() -> None:
    # 400 pairs of a correlation of .6, 300 times: 95 % of the intervals hold it; fewer than 88 % or
    # all of them have a probability below 1e-6. Control: intervals of half the documents' error.
    generator = np.random.default_rng(7)
    held = narrow = 0
    for _ in range(300):
        one = generator.normal(size=400)
        other = 0.6 * one + 0.8 * generator.normal(size=400)
        value, low, high = correlation(one, other, 0.95)
        held += low <= 0.6 <= high
        narrow += abs(value - 0.6) <= (high - low) / 4
    assert 264 <= held < 300
    assert narrow < 264


def test_what_cannot_be_learnt_is_refused() -> None:
    features = np.ones((4, 2))
    with pytest.raises(ValueError, match="all numbers are equal"):
        out_of_fold(features, np.ones(4), 2, 1, "ridge")
    with pytest.raises(ValueError, match="5 folds of 4 documents"):
        out_of_fold(features, np.arange(4.0), 5, 1, "ridge")
