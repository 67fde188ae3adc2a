"""Empirical audit: what the real code path releases for two neighbours, told apart.

An event is chosen on half of the draws and its probabilities are bounded on the other half
(Clopper and Pearson, at ALPHA / 2 each): with probability at least 1 - ALPHA the log-ratio of the
bounds is below the true loss, hence below the stated epsilon. The same audit must find more than
epsilon where the noise is half as wide, or the neighbours lie twice as far apart.

Power. With 60,000 held-out draws and an event of probability p >= 0.15 under one and q >= 0.02
under the other, each log-probability is known to 5 sqrt((1 - q) / (60,000 q)) < 0.15. Half the
noise has twice the loss, 2 epsilon with epsilon >= 0.5: 0.5 is more than the two errors.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from quietcorpus.mechanisms.bags.bag_of_words import Accounting, BagOfWords, add_noise
from quietcorpus.mechanisms.bags.histogram import ThresholdedVocabulary
from quietcorpus.mechanisms.noise.geometric import DenseNoise, SparseNoise

DRAWS = 120_000

Noise = DenseNoise | SparseNoise


def releases(checks: Any, noise: Noise, size: int, counts: list[int]) -> np.ndarray:
    """The noisy counts of DRAWS documents with the same bins, through `add_noise`."""
    stream, addresses = checks.stream_and_addresses(DRAWS)
    tokens = np.repeat(np.arange(size, dtype=np.int32), counts)
    offsets = np.arange(DRAWS + 1, dtype=np.int64) * len(tokens)
    bags = add_noise(noise, size, stream, addresses, offsets, np.tile(tokens, DRAWS))
    matrix = np.zeros((DRAWS, size), dtype=np.int64)
    matrix[np.repeat(np.arange(DRAWS), np.diff(bags.offsets)), bags.entries] = bags.counts
    return matrix


def bound(count: int, trials: int, level: float, *, upper: bool) -> float:
    """Clopper and Pearson's one-sided bound of a probability."""
    if upper:
        return float(stats.beta.isf(level, count + 1, trials - count)) if count < trials else 1.0
    return float(stats.beta.ppf(level, count, trials - count + 1)) if count else 0.0


def loss_at_least(alpha: float, one: np.ndarray, other: np.ndarray) -> float:
    """A bound of the privacy loss from below, from scores of draws of both neighbours."""
    half = DRAWS // 2

    def ratio(part: slice, threshold: int, level: float) -> float:
        p = bound(int((one[part] >= threshold).sum()), half, level, upper=False)
        q = bound(int((other[part] >= threshold).sum()), half, level, upper=True)
        return math.log(p / q) if p > 0 else -math.inf

    candidates = range(int(one.min()), int(one.max()) + 1)
    chosen = max(candidates, key=lambda t: ratio(slice(half), t, alpha))
    return ratio(slice(half, None), chosen, alpha / 2)


def audit(checks: Any, noise: Noise, counts: list[int], neighbour: list[int]) -> float:
    size = len(counts)
    drawn, others = (releases(checks, noise, size, x) for x in (counts, neighbour))

    def score(outputs: np.ndarray) -> np.ndarray:
        """The log-likelihood ratio of two-sided geometric noise, over its rate."""
        return (np.abs(outputs - neighbour) - np.abs(outputs - counts)).sum(axis=1)

    return loss_at_least(checks.alpha, score(drawn), score(others))


CASES = {
    "added": ([0, 3, 1, 0], [2, 3, 1, 0]),
    "two terms": ([1, 0, 0, 2], [2, 0, 1, 2]),
    "replaced": ([1, 4, 0, 0], [0, 5, 0, 0]),
    "to nothing": ([1, 1], [0, 0]),
}


@pytest.mark.parametrize("kind", [DenseNoise, SparseNoise])
@pytest.mark.parametrize("case", CASES)
def test_no_audit_finds_more_than_epsilon(checks: Any, kind: type[Noise], case: str) -> None:
    # N = 2, epsilon = 1, in bins of both samplers.
    counts, neighbour = CASES[case]
    mechanism = BagOfWords(2, Fraction(1), len(counts), len(counts), Accounting.TIGHT)
    stated = float(mechanism.guarantee.epsilon)
    size = len(counts)
    found = audit(checks, kind(mechanism.rate, size), counts, neighbour)
    assert found <= stated
    assert found >= 0.7 * stated  # An audit that finds nothing would prove nothing.


@pytest.mark.parametrize("kind", [DenseNoise, SparseNoise])
@pytest.mark.parametrize("case", CASES)
def test_control_half_the_noise_is_caught(checks: Any, kind: type[Noise], case: str) -> None:
    counts, neighbour = CASES[case]
    assert audit(checks, kind(2 * Fraction(1, 2), len(counts)), counts, neighbour) > 1


@pytest.mark.parametrize("kind", [DenseNoise, SparseNoise])
def test_control_a_wrong_sensitivity_is_caught(checks: Any, kind: type[Noise]) -> None:
    # Replacing N tokens is a distance of 2N: a mechanism that takes it for N loses 2 epsilon.
    assert audit(checks, kind(Fraction(1, 2), 2), [2, 0], [0, 2]) > 1


def test_the_papers_accounting_loses_more_than_the_papers_epsilon(checks: Any) -> None:
    mechanism = BagOfWords(2, Fraction(1, 2), 8, 4, Accounting.PER_ENTRY)
    noise = mechanism.noise()
    found = audit(checks, noise, *CASES["added"])
    assert float(mechanism.papers_epsilon) < found <= float(mechanism.guarantee.epsilon) == 1


# A term of frequency 1 may be released with probability delta / N at most. 200,000 terms at
# delta / N = 0.0823 and a rate of 1/2: 16,460 expected, deviation 123. A threshold lower by one
# releases e^(1/2) times as many, 10,700 more: 87 deviations. Half the noise releases 3,300.
TERMS = 200_000


def rare_terms_released(checks: Any, selection: ThresholdedVocabulary) -> int:
    stream, _ = checks.stream_and_addresses(1)
    terms = [i.to_bytes(4, "little") for i in range(TERMS)]
    return int(selection.select(terms, [1] * TERMS, stream).sum())


@pytest.mark.parametrize("precision", [1, 3])
def test_a_term_of_one_document_is_released_at_most_delta_over_n(
    checks: Any, precision: int
) -> None:
    law = checks.geometric(0.5)
    chance = float(1 - law.at_most(3))  # Pr[1 + Z >= 5]
    delta = precision * Fraction(chance * (1 + 1e-9))
    selection = ThresholdedVocabulary(precision, Fraction(precision, 2), delta)
    assert selection.threshold == 5
    released = rare_terms_released(checks, selection)
    checks.at_most(released, TERMS, float(delta / precision))
    checks.binomial(released, TERMS, chance)


class Lower(ThresholdedVocabulary):
    """The control: a threshold that is one too low."""

    @property
    def threshold(self) -> int:
        return super().threshold - 1


def test_control_a_lower_threshold_or_double_noise_is_rejected(checks: Any) -> None:
    law = checks.geometric(0.5)
    delta = Fraction(float(1 - law.at_most(3)) * (1 + 1e-9))
    lower = rare_terms_released(checks, Lower(1, Fraction(1, 2), delta))
    with pytest.raises(AssertionError):
        checks.at_most(lower, TERMS, float(delta))
    double = int((1 + checks.geometric(0.25).draw((TERMS,)) >= 5).sum())
    with pytest.raises(AssertionError):
        checks.at_most(double, TERMS, float(delta))
    half = int((1 + checks.geometric(1).draw((TERMS,)) >= 5).sum())
    with pytest.raises(AssertionError):
        checks.binomial(half, TERMS, float(delta))
