"""The choice of the best of several settings, from a few noisy runs of each."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats


class Choice(NamedTuple):
    """The setting with the best result, and those that may be better.

    Attributes:
        best: the number of the setting with the highest mean.
        among: numbers of settings, including `best`; one of these is the truly best setting.
    """

    best: int
    among: tuple[int, ...]


def choose(scores: npt.NDArray[np.float64], confidence: float = 0.95) -> Choice:
    """Compare the means of settings, each of which was tried in every run.

    With probability `confidence` at least, the setting of the highest expectation is in `among`, if
    runs are independent and identically distributed and differences of two settings are normal
    (Bonferroni over one-sided paired t-tests of every other setting against it; Hsu 1996,
    "Multiple Comparisons", chapter 4). Settings may differ in their variances.

    Args:
        scores: float64 (m, R): m settings in R >= 2 runs; higher is better.
        confidence: between 0 and 1.
    """
    settings, runs = scores.shape
    best = int(scores.mean(axis=1).argmax())
    if settings == 1:
        return Choice(best, (best,))
    lead = scores[:, None] - scores
    errors = lead.std(axis=2, ddof=1) / np.sqrt(runs)
    margin = stats.t.isf((1 - confidence) / (settings - 1), runs - 1)
    beaten = (lead.mean(axis=2) > margin * errors).any(axis=0)
    return Choice(best, tuple(np.flatnonzero(~beaten | (np.arange(settings) == best)).tolist()))
