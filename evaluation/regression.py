"""Regression of a number on features, out of fold: ridge and support vectors.

Vu, Tran and Jiang (slides of dpUGC, CICLing 2019, section 3, results #2) judge word vectors by such
a regression on users' texts, and do not name its target. Features and numbers are standardised by
the documents that are learnt from.
"""

from __future__ import annotations

import math
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
from scipy import stats

from .intervals import Estimate, over_draws

Model: TypeAlias = Literal["ridge", "SVR"]
MODELS: tuple[Model, ...] = get_args(Model)
_LEAST_FOR_AN_INTERVAL = 4  # below, Fisher's transform has no standard error

Numbers = npt.NDArray[np.float64]


def out_of_fold(
    features: npt.NDArray[np.floating], numbers: Numbers, folds: int, seed: int, model: Model
) -> Numbers:
    """Predict each document's number by a model learnt from the other folds, float64 (n,).

    Args:
        features: (n, d).
        numbers: float64 (n,), finite.
        folds: 2 or more.
        seed: the seed of the folds.
        model: `ridge` (a penalty of 1), or `SVR` (radial kernel, C of 1).

    Raises:
        ValueError: fewer documents than folds, or numbers that are all equal.
    """
    from sklearn.model_selection import KFold

    if not 2 <= folds <= len(numbers):
        raise ValueError(f"{folds} folds of {len(numbers)} documents; name 2 to {len(numbers)}")
    if not np.ptp(numbers) > 0:
        raise ValueError("all numbers are equal; nothing can be learnt of them")
    predicted = np.empty(len(numbers))
    for rest, test in KFold(folds, shuffle=True, random_state=seed).split(features):
        predicted[test] = _made(model).fit(features[rest], numbers[rest]).predict(features[test])
    return predicted


def rmse(numbers: Numbers, predicted: Numbers, confidence: float) -> Estimate:
    """Compute the root of the mean squared error, with an interval over documents (Student's t)."""
    squares = (numbers - predicted) ** 2
    low, high = over_draws(squares, confidence)
    return math.sqrt(squares.mean()), math.sqrt(max(0.0, low)), math.sqrt(high)


def correlation(numbers: Numbers, predicted: Numbers, confidence: float) -> Estimate:
    """Compute Pearson's correlation, with an interval over documents by Fisher's transform.

    It is 0 for predictions that are all equal, and its interval all there is for fewer than four.
    """
    value = float(np.corrcoef(numbers, predicted)[0, 1]) if np.ptp(predicted) > 0 else 0.0
    if len(numbers) < _LEAST_FOR_AN_INTERVAL:
        return value, -1.0, 1.0
    half = float(stats.norm.ppf((1 + confidence) / 2)) / math.sqrt(len(numbers) - 3)
    at = math.atanh(min(max(value, -1 + 1e-12), 1 - 1e-12))
    return value, math.tanh(at - half), math.tanh(at + half)


def _made(model: Model) -> Any:
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVR

    learner = Ridge() if model == "ridge" else SVR()
    return TransformedTargetRegressor(
        make_pipeline(StandardScaler(), learner), transformer=StandardScaler()
    )
