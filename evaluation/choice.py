"""Which of several settings is best, as far as a few noisy runs of each can tell."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats


class Choice(NamedTuple):
    """The setting that did best, and those that might be better.

    Attributes:
        best: the number of the setting with the highest mean.
        among: numbers of settings, `best` with them: the one that is truly best is one of these.
        margin: what a mean may be above another's by chance, at the confidence asked for.
    """

    best: int
    among: tuple[int, ...]
    margin: float


def choose(scores: npt.NDArray[np.float64], confidence: float = 0.95) -> Choice:
    """Compare the means of settings, each of which was tried in every run.

    With probability `confidence` at least, the setting of the highest expectation is in `among`,
    for scores that are a setting's expectation, plus what all settings of a run have in common,
    plus independent normal noise of one variance (Bonferroni over one-sided t-tests of every other
    setting against it, in randomised blocks; Hsu 1996, "Multiple Comparisons", chapter 4).

    Args:
        scores: float64 (m, R): m settings in R >= 2 runs; higher is better.
        confidence: between 0 and 1.
    """
    settings, runs = scores.shape
    means = scores.mean(axis=1)
    best = int(means.argmax())
    if settings == 1:
        return Choice(best, (best,), 0.0)
    left = scores - means[:, None] - scores.mean(axis=0) + scores.mean()
    freedom = (settings - 1) * (runs - 1)
    deviation = np.sqrt((left**2).sum() / freedom * 2 / runs)
    margin = float(stats.t.isf((1 - confidence) / (settings - 1), freedom) * deviation)
    among = np.flatnonzero(means >= means[best] - margin)
    return Choice(best, tuple(among.tolist()), margin)
