"""The noise that a dry run foretells, each number computed in another way."""

from __future__ import annotations

import math
import re
from fractions import Fraction

import numpy as np
import pytest

from quietcorpus.mechanisms.bags.bag_of_words import Accounting, BagOfWords
from quietcorpus.mechanisms.bags.histogram import ThresholdedVocabulary
from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.mechanisms.noise.euclidean_noise import EuclideanNoise
from quietcorpus.mechanisms.noise.geometric import TwoSidedGeometric
from quietcorpus.mechanisms.sentences.projected_mean import STEPS, ProjectedMean
from quietcorpus.mechanisms.votes.votes import Votes
from quietcorpus.pipelines.card.model import Meaning, Spread, Typical
from quietcorpus.pipelines.jobs import notices

RATES = (Fraction(1, 20), Fraction(1, 2), Fraction(3))


def numbers(text: str) -> list[float]:
    """The numbers in a sentence."""
    return [float(one.replace(",", "")) for one in re.findall(r"\d[\d,]*(?:\.\d+)?", text)]


def law(rate: Fraction) -> tuple[np.ndarray, np.ndarray]:
    """Values of two-sided geometric noise, and their chances, as differences of two geometrics."""
    decay = math.exp(-float(rate))
    one = (1 - decay) * decay ** np.arange(1500)
    chances = np.convolve(one, one[::-1])
    return np.arange(-1499, 1500), chances


@pytest.mark.parametrize("rate", RATES)
def test_the_law_of_a_count(rate: Fraction) -> None:
    # Kills: the mean of one of the two geometrics, or their deviation; Pr[Z >= 0].
    values, chances = law(rate)
    found = TwoSidedGeometric(rate)
    assert found.mean_size == pytest.approx((np.abs(values) * chances).sum(), rel=1e-6)
    assert found.above_zero == pytest.approx(chances[values > 0].sum(), rel=1e-6)


def test_a_law_with_hardly_any_noise() -> None:
    # Kills: a number that no float holds.
    found = TwoSidedGeometric(Fraction(10**6))
    assert found.mean_size == 0
    assert found.above_zero == pytest.approx(0)


@pytest.mark.parametrize("rate", RATES)
def test_bags_of_words(rate: Fraction) -> None:
    # Kills: the rate of the paper's accounting, words that are counted by bins, and the reverse.
    values, chances = law(rate)
    size, above = (np.abs(values) * chances).sum(), chances[values > 0].sum()
    precision, words, bins = 10, 5000, 40
    whole = BagOfWords(precision, rate * precision, words, words, Accounting.TIGHT)
    off, kept, added = notices.of_bags(whole, size_known=True)
    assert numbers(off)[0] == pytest.approx(size, rel=0.06)
    assert numbers(kept) == pytest.approx([chances[values >= 0].sum(), above], rel=0.06)
    assert numbers(added) == pytest.approx([words * above, words], rel=0.06)
    *_, unknown = notices.of_bags(whole, size_known=False)
    assert numbers(unknown) == pytest.approx([1000 * above, 1000], rel=0.06)
    # A bin without words is released with what of the noise is above zero.
    mapped = BagOfWords(precision, rate * precision, words, bins, Accounting.TIGHT)
    binned, empty = notices.of_bags(mapped, size_known=True)
    assert numbers(binned) == pytest.approx([bins, size], rel=0.06)
    positive = (np.maximum(values, 0) * chances).sum()
    assert numbers(empty) == pytest.approx([bins * positive], rel=0.06)
    paper = BagOfWords(precision, rate * precision, words, bins, Accounting.PER_ENTRY)
    assert notices.of_bags(paper, size_known=True) != [binned, empty]


def test_a_histogram_and_a_private_vocabulary() -> None:
    # Kills: a threshold of another N, of delta for all N words together.
    assert numbers(notices.of_histogram(Fraction(1, 20)))[0] == pytest.approx(20, rel=0.01)
    precision, epsilon, delta = 4, Fraction(2), Fraction(1, 1000)
    found = ThresholdedVocabulary(precision, epsilon, delta)
    values, chances = law(epsilon / precision)
    least = next(t for t in range(2, 200) if precision * chances[values >= t - 1].sum() <= delta)
    assert numbers(notices.of_threshold(found.threshold)) == [least]


def test_words() -> None:
    # Kills: a mean in place of the median, sizes that draws could not show.
    def of(unchanged: float, size: float, length: int | None) -> Typical:
        spreads = (Spread(least=0, low=0, median=m, high=9, largest=9) for m in (unchanged, size))
        first, second = spreads
        return Typical(
            document_words=length, epsilon=1, unchanged=first, set_size=second, set_size_limit=200
        )

    found = Meaning(
        mean_distance=1,
        maximum_distance=2,
        loss_at_mean=1,
        loss_at_maximum=2,
        typical=[of(0.125, 37, None), of(0.5, 200, 1000)],
        sample="",
    )
    one, other = notices.of_words(found)
    assert numbers(one) == [0.12, 95, 37]
    assert "at least" not in one
    assert numbers(other) == [1000, 0.5, 95, 200]
    assert "at least 200 words" in other


def test_votes() -> None:
    # Kills: votes that count for one whatever `nearest`, a threshold of one deviation.
    votes = Votes(4, Fraction(2), Fraction(1, 10**6))
    deviation = float(votes.noise.noise_multiplier)  # in units of one document's norm
    needed, chance = notices.of_votes(votes, 100_000, "documents")
    (alone, _) = notices.of_votes(votes, 100_000, "documents", smooth=True)
    assert alone == f"{needed}, by its own votes alone"
    # A document gives each of its four texts half of its norm.
    assert numbers(needed)[0] == pytest.approx(3 * deviation / 0.5, abs=1)
    drawn = np.random.default_rng(1).normal(0, deviation, 10**6)
    by_chance = (drawn >= 3 * deviation).mean() * 100_000
    assert numbers(chance)[1] == pytest.approx(by_chance, rel=0.15)


def test_users() -> None:
    # Kills: users that are rounded up.
    assert numbers(notices.of_users(1234.9, 5000)) == [1234, 5000]


@pytest.mark.parametrize(("epsilon", "most"), [(3, Fraction(1)), (10, Fraction(1, 2))])
def test_candidates(epsilon: int, most: Fraction) -> None:
    # Kills: the whole of epsilon in place of half of it, one sentence too few or too many.
    candidates = 500

    def odds(sentences: int) -> float:
        return math.exp(epsilon * float(most) * sentences / 2) / (candidates - 1)

    needed = int(numbers(notices.of_candidates(Fraction(epsilon), candidates, most))[0])
    assert odds(needed) >= 1 > odds(needed - 1)


def test_projected_means() -> None:
    # Against draws. Kills: a length per direction, a mean that is not divided by the sentences.
    said = numbers(notices.of_projected_mean(Fraction(10), 12))
    mechanism = ProjectedMean(Fraction(10), 12)
    stream = ReleaseKey.fresh().stage("test", 1)
    addresses = stream.addresses("s", range(400), [b"x"] * 400)
    lengths = np.linalg.norm(EuclideanNoise(mechanism.rate, 12).sample(stream, addresses), axis=1)
    assert said[0] == 10
    assert said[1] == pytest.approx(lengths.mean() / STEPS / 10, rel=0.15)
