"""The difference of two shares of the same documents, with an interval over documents."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy import optimize, stats

_ROUNDING = 1e-12


def of_paired_difference(
    one: npt.NDArray[np.bool_], other: npt.NDArray[np.bool_], confidence: float
) -> tuple[float, float, float]:
    """Estimate how much more often `one` holds than `other`, for the same documents.

    The interval is Tango's (1998): it holds the differences that a score test does not reject. For
    a difference of zero, that test is McNemar's (1947) without a correction of continuity. Only
    documents in which the two differ count for the difference, so that the interval detects it with
    fewer documents than two intervals would.

    Args:
        one, other: bool (n,), n >= 1, for the same documents.
        confidence: the confidence of the interval, such as 0.95.

    Returns:
        The difference of the shares, and the low and the high end of its interval.
    """
    size = len(one)
    gained, lost = int((one & ~other).sum()), int((other & ~one).sum())
    value = (gained - lost) / size
    quantile = float(stats.norm.ppf((1 + confidence) / 2))

    def beyond(difference: float) -> float:
        return abs(_score(gained, lost, size, difference)) - quantile

    inside = 1 - _ROUNDING
    start = min(max(value, -inside), inside)
    low = optimize.brentq(beyond, -inside, start) if value > -1 else -1.0
    high = optimize.brentq(beyond, start, inside) if value < 1 else 1.0
    return value, float(low), float(high)


def _score(gained: int, lost: int, size: int, difference: float) -> float:
    """Compute Tango's statistic: 0 at the observed difference.

    The share of documents in which `other` alone holds is estimated under the difference: the
    positive root of 2 n q^2 + b q + c = 0.
    """
    b = -gained - lost + (2 * size - gained + lost) * difference
    c = -lost * difference * (1 - difference)
    share = (math.sqrt(max(0.0, b * b - 8 * size * c)) - b) / (4 * size)
    variance = size * (2 * share + difference * (1 - difference))
    gap = gained - lost - size * difference
    if gap == 0:
        return 0.0
    return gap / math.sqrt(max(variance, _ROUNDING))
