"""Exact bounds on shares, counts and differences, for statements with a stated confidence."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import optimize, stats

_ROUNDING = 1e-9
_BOOTSTRAPS, _BOOTSTRAP_SEED = 1_000, 1

Estimate = tuple[float, float, float]
"""A value, and the low and the high end of its interval."""


def most_allowed(draws: int, chance: Fraction, level: float) -> int:
    """Find the largest c with Pr[Binomial(draws, chance) <= c] <= level; -1 if there is none.

    If an event has a probability of at least `chance`, it occurs at most c times in `draws`
    independent draws with a probability of at most `level`: it occurs as often as
    Binomial(draws, chance), or more often (stochastic order).
    """
    guess = int(stats.binom.ppf(level, draws, float(chance)))
    while guess >= 0 and stats.binom.cdf(guess, draws, float(chance)) > level:
        guess -= 1
    return guess


def share_at_least(count: int, sample: int, level: float, population: int | None = None) -> float:
    """Compute a lower confidence bound on the share of a population that has a property.

    Args:
        count: those of the sample that have it.
        sample: the size of the sample.
        level: the probability, at most, that the bound is above the true share.
        population: None if the sample was drawn with replacement (Clopper and Pearson 1934,
            binomial); else the size of the population it was drawn from without replacement
            (the same construction, hypergeometric). A sample of the whole population gives the
            share itself.

    Both bounds are the least share under which `count` or more have a probability above `level`;
    the true share is below it only if the observation has a probability of at most `level`.
    """
    if count == 0:
        return 0.0
    if population is None:
        return float(stats.beta.ppf(level, count, sample - count + 1))
    low, high = count - 1, population - (sample - count)  # `low` is ruled out, `high` is not
    while high - low > 1:
        middle = (low + high) // 2
        seen = stats.hypergeom.sf(count - 1, population, middle, sample)
        low, high = (low, middle) if seen > level else (middle, high)
    return high / population


def of_share(successes: float, sample: int, confidence: float) -> tuple[float, float]:
    """Compute an interval for a share: Clopper and Pearson (1934), half of the error at either end.

    It covers at least as often as stated if the members of the sample are independent, even if
    their chances differ: their number of successes then varies less than the binomial one of the
    same mean (Hoeffding 1956).

    Args:
        successes: the number of successes, or the sum of chances (then rounded from the middle).
        sample: the number of members, one or more.
        confidence: the confidence of the interval, such as 0.95.
    """
    level = (1 - confidence) / 2
    failures = sample - successes
    low = share_at_least(math.floor(successes + _ROUNDING), sample, level)
    high = 1 - share_at_least(math.floor(failures + _ROUNDING), sample, level)
    return low, high


def of_auc(value: float, members: int, others: int, confidence: float) -> tuple[float, float]:
    """Compute an interval for the area under an ROC curve (Newcombe 2006, part 2, method 5).

    It holds the areas whose distance from the observed one is at most the standard error under them
    times the normal quantile. The standard error is that of Hanley and McNeil (1982), with both
    numbers of documents in the numerator replaced by their mean. The interval is never a point,
    even if all members were told apart. It covers about as often as stated, and least (.915 for
    .95, in simulation) where members' scores are spread five times as widely as others'.

    Args:
        value: the observed area, 0 to 1.
        members, others: the number of either kind, one or more.
        confidence: the confidence of the interval, such as 0.95.
    """
    quantile = float(stats.norm.ppf((1 + confidence) / 2))
    more = (members + others) / 2 - 1

    def beyond(area: float) -> float:
        spread = 1 + more * (1 - area) / (2 - area) + more * area / (1 + area)
        variance = area * (1 - area) * spread / (members * others)
        return abs(value - area) - quantile * math.sqrt(variance)

    inside = min(max(value, _ROUNDING), 1 - _ROUNDING)  # at 0 and at 1, nothing varies
    low = optimize.brentq(beyond, 0, inside) if value > 0 else 0.0
    high = optimize.brentq(beyond, inside, 1) if value < 1 else 1.0
    return float(low), float(high)


def of_auc_by_delong(
    members: npt.NDArray[np.float64], others: npt.NDArray[np.float64], confidence: float
) -> tuple[float, float]:
    """Compute an interval for the area under an ROC curve (DeLong, DeLong and Clarke-Pearson 1988).

    The variance is that of how far each score lies above those of the other kind, whatever laws the
    scores follow. It is a point where all members were told apart, so that `of_auc` should stand
    beside it: the wider ends of both cover where either does.

    Args:
        members, others: float64 scores, two or more of either.
        confidence: the confidence of the interval, such as 0.95.
    """
    ranks = stats.rankdata(np.concatenate([members, others]))
    above = (ranks[: len(members)] - stats.rankdata(members)) / len(others)
    below = 1 - (ranks[len(members) :] - stats.rankdata(others)) / len(members)
    variance = above.var(ddof=1) / len(members) + below.var(ddof=1) / len(others)
    half = float(stats.norm.ppf((1 + confidence) / 2)) * math.sqrt(variance)
    area = float(above.mean())
    return max(0.0, area - half), min(1.0, area + half)


def of_power(
    members: npt.NDArray[np.float64],
    others: npt.NDArray[np.float64],
    rate: Fraction,
    confidence: float,
) -> Estimate:
    """Estimate the share of members' scores above a threshold that `rate` of others' exceed.

    The value is that of the lowest threshold which at most this share of the given others exceed;
    the threshold is one of their scores. The interval covers the uncertainty of the threshold, too:
    its low end is a bound (Clopper and Pearson) on the share above the threshold that is surely
    exceeded by no more of all others, its high end on that above one surely exceeded by no fewer.
    Each of the four statements errs with at most a quarter of 1 - confidence, if scores are
    independent within either kind. Few others decide nothing: with 0 and 1 for its ends, the
    interval says so.

    Args:
        members, others: float64 scores, one or more of either.
        rate: the false positive rate, between 0 and 1.
        confidence: the confidence of the interval, such as 0.95.
    """
    level, size = (1 - confidence) / 4, len(others)
    falling = np.sort(others)[::-1]
    value = float((members > falling[math.floor(rate * size)]).mean())
    # Above the (k + 1)-th largest of n scores lies at most the share `rate` of their law, except
    # with the probability that Binomial(n, rate) is at most k.
    strict = most_allowed(size, rate, level)
    low, high = 0.0, 1.0
    if strict >= 0:
        above = int((members > falling[strict]).sum())
        low = share_at_least(above, len(members), level)
    loose = size - 1 - most_allowed(size, 1 - rate, level)
    if loose < size:
        below = int((members < falling[loose]).sum())
        high = 1 - share_at_least(below, len(members), level)
    return value, low, high


def tells_power(others: int, rate: Fraction, confidence: float) -> bool:
    """Return whether the low end of `of_power` can be above 0 with this number of others."""
    return most_allowed(others, rate, (1 - confidence) / 4) >= 0


def of_difference(one: Estimate, other: Estimate) -> tuple[float, float]:
    """Compute an interval for `one` less `other`, from an interval of each (Zou and Donner 2008).

    For independent estimates it covers about as often as their intervals do; for two that rise
    together, more often.

    Args:
        one, other: the estimate, and the low and the high end of its interval.
    """
    value, low, high = one
    less, less_low, less_high = other
    difference = value - less
    return (
        difference - math.hypot(value - low, less_high - less),
        difference + math.hypot(high - value, less - less_low),
    )


def mean_over_blocks(
    values: npt.NDArray[np.float64], blocks: npt.NDArray[np.int64], confidence: float
) -> tuple[float, float]:
    """Compute a confidence interval for the mean, by Student's t over means of independent blocks.

    The values of one block may depend on each other. Blocks should have about equal sizes. A single
    block says nothing, and its interval is infinite.

    Args:
        values: float64 (n,).
        blocks: int64 (n,), the block of each value, numbered from zero.
        confidence: the confidence of the interval, such as 0.95.
    """
    sizes = np.bincount(blocks)
    if len(sizes) < 2:
        return -math.inf, math.inf
    mean = float(values.mean())
    # Weighted by their sizes, the blocks' means average to the mean.
    deviations = (np.bincount(blocks, weights=values) - sizes * mean) / sizes.mean()
    error = float(np.sqrt((deviations**2).sum() / (len(sizes) - 1) / len(sizes)))
    half = float(stats.t.ppf((1 + confidence) / 2, len(sizes) - 1)) * error
    return mean - half, mean + half


def over_draws(values: npt.ArrayLike, confidence: float) -> tuple[float, float]:
    """Compute a confidence interval for the mean of independent draws (Student's t).

    It is infinite for one draw. It covers at the stated rate if the draws are normal; where all of
    few draws happen to be equal, it is a point.

    Args:
        values: floats (n,), a score for each draw of the release.
        confidence: the confidence of the interval, such as 0.95.
    """
    draws = np.asarray(values, dtype=np.float64)
    return mean_over_blocks(draws, np.arange(len(draws)), confidence)


class MacroIntervals(NamedTuple):
    """Intervals for the means over classes of precision, recall and F1."""

    precision: tuple[float, float]
    recall: tuple[float, float]
    f1: tuple[float, float]


def of_macro_scores(
    truth: npt.NDArray[np.int64], predicted: npt.NDArray[np.int64], confidence: float
) -> MacroIntervals:
    """Compute intervals for macro scores over documents, by the percentiles of a bootstrap.

    Documents are drawn anew as often as there are: their pairs of a label and its prediction, that
    is to say the cells of the confusion matrix, are then multinomial. A class that is never drawn,
    or never predicted, scores 0. The draws are the same every time.

    Args:
        truth: (n,), labels as numbers; the means are over those that occur.
        predicted: (n,), labels as numbers; those that do not occur in the truth are wrong.
        confidence: the confidence of the intervals, such as 0.95.
    """
    names, rows = np.unique(truth, return_inverse=True)
    count = len(names)
    places = np.minimum(np.searchsorted(names, predicted), count - 1)
    columns = np.where(names[places] == predicted, places, count)  # the last is for all others
    cells = np.bincount(rows * (count + 1) + columns, minlength=count * (count + 1))
    generator = np.random.default_rng(_BOOTSTRAP_SEED)
    drawn = generator.multinomial(len(truth), cells / len(truth), _BOOTSTRAPS)
    drawn = drawn.reshape(_BOOTSTRAPS, count, count + 1)
    right = np.einsum("bcc->bc", drawn[:, :, :count])
    of_class, taken = drawn.sum(axis=2), drawn[:, :, :count].sum(axis=1)
    level = (1 - confidence) / 2

    def ends(scores: npt.NDArray[np.float64]) -> tuple[float, float]:
        low, high = np.quantile(scores.mean(axis=1), [level, 1 - level])
        return float(low), float(high)

    return MacroIntervals(
        ends(right / np.maximum(taken, 1)),
        ends(right / np.maximum(of_class, 1)),
        ends(2 * right / np.maximum(of_class + taken, 1)),
    )


_DIFFERENCE_ROUNDING = 1e-12


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

    inside = 1 - _DIFFERENCE_ROUNDING
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
    return gap / math.sqrt(max(variance, _DIFFERENCE_ROUNDING))
