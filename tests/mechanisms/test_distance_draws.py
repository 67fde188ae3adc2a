"""Words drawn by their distances: the laws, their proofs on small vocabularies, and exactness."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import chi2

from quietcorpus.indexes.within import Within
from quietcorpus.mechanisms import distance_tables
from quietcorpus.mechanisms.distance_draws import Decline, DistanceDraws, Masses, log_above
from quietcorpus.mechanisms.keystream import Addresses, Keystream, ReleaseKey
from quietcorpus.mechanisms.tem import BETA, TruncatedExponential, radius_of
from quietcorpus.mechanisms.word_exponential import WordExponential
from quietcorpus.pipelines.audit.word_laws import largest_loss, log_laws

ALPHA = 1e-6
EPSILON, GAMMA = Fraction(2), Fraction(3, 2)
WORDS, DIMENSIONS = 60, 3
DECLINES = {
    "tem": TruncatedExponential(EPSILON, GAMMA).decline,
    "tem beyond its table": TruncatedExponential(Fraction(9), Fraction(3)).decline,
    "exponential": WordExponential(EPSILON).decline,
    "exponential beyond its table": WordExponential(Fraction(9)).decline,
}
ROOM = np.random.default_rng(7).normal(size=(WORDS, DIMENSIONS)).astype(np.float32)
"""Vectors; which ones they are matters to no test."""
PLACES = Within(ROOM)
APART = np.linalg.norm(ROOM[:, None].astype(np.float64) - ROOM, axis=2)


def law(decline: Decline) -> npt.NDArray[np.float64]:
    """The law of the papers, float64 (V, V)."""
    far = math.inf if decline.truncation is None else float(decline.truncation)
    weights = np.exp(-float(decline.epsilon) / 2 * np.minimum(APART, far))
    found: npt.NDArray[np.float64] = weights / weights.sum(axis=1, keepdims=True)
    return found


def places(count: int) -> tuple[Keystream, Addresses]:
    stream = ReleaseKey.fresh().stage("words", 1)
    return stream, stream.addresses("file", range(count), [b""] * count)


def surprise(drawn: npt.NDArray[np.int32], chances: npt.NDArray[np.float64]) -> float:
    """The p-value of Pearson's test; outcomes of few expected draws are put together."""
    expected = chances * len(drawn)
    counts = np.bincount(drawn, minlength=len(chances))
    often = expected >= 20
    pairs = [*zip(counts[often], expected[often], strict=True)]
    pairs.append((counts[~often].sum(), expected[~often].sum()))
    statistic = sum((seen - own) ** 2 / own for seen, own in pairs if own)
    return float(chi2.sf(statistic, sum(own > 0 for _, own in pairs) - 1))


# Power. Doubling epsilon, or forgetting that words beyond the table may be rejected, moves chances
# by a tenth or more: 100,000 draws give a statistic above 1,000, where 1e-6 of 60 outcomes is 130.
@pytest.mark.parametrize("name", DECLINES)
def test_draws_follow_the_law_and_no_other(name: str) -> None:
    # Kills: epsilon for epsilon / 2, a weight without its rest, a word of all that is never
    # rejected, one of all words too few, gamma for the radius of a table.
    decline = DECLINES[name]
    draws, stated = DistanceDraws(PLACES, decline), law(decline)
    wrong = law(Decline(2 * decline.epsilon, decline.truncation))
    for word in (0, 31):
        stream, addresses = places(100_000)
        drawn = draws.draw(np.full(len(addresses), word, np.int32), stream, addresses)
        assert surprise(drawn, stated[word]) > ALPHA / 8
        assert surprise(drawn, wrong[word]) < ALPHA


def test_words_beyond_the_table_are_drawn_by_their_own_distances() -> None:
    # Kills: the exponential mechanism that keeps every word which it draws for its b: TEM's law.
    decline = WordExponential(Fraction(9)).decline
    draws = DistanceDraws(PLACES, decline)
    words = np.zeros(20_000, np.int32)
    bases = DistanceDraws(PLACES, decline).weights(words[:1])[2]
    _, _, squares = PLACES.within(words[:1], np.inf)
    beyond = np.sqrt(squares) > float(decline.radius(WORDS))
    assert beyond.any()
    kept = []
    for attempt in range(5):
        stream, addresses = places(len(words))
        others = np.resize(np.flatnonzero(beyond).astype(np.int32), len(words))
        chances = np.exp(draws.log_chances(squares[others]))
        found = draws._kept(words, others, stream, addresses, attempt)
        kept.append((found.sum(), chances.sum(), (chances * (1 - chances)).sum()))
    seen, expected, variance = np.sum(kept, axis=0)
    assert abs(seen - expected) < 4.9 * math.sqrt(variance) + 1  # a normal's 1e-6
    assert expected < 0.9 * 5 * len(words)  # all kept would be seen
    assert 0 < bases[0] < 1


@pytest.mark.parametrize("name", DECLINES)
def test_the_word_does_not_depend_on_tables_batches_and_floats(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Kills: a draw that floats decide within their error, one that a smaller table or another
    # batch changes, bits that the integers do not share with the table.
    count = 150
    words = np.random.default_rng().integers(WORDS, size=count).astype(np.int32)
    stream, addresses = places(count)
    whole = DistanceDraws(PLACES, DECLINES[name])
    drawn = whole.draw(words, stream, addresses)
    small = DistanceDraws(PLACES, DECLINES[name], most_entries=10)
    one_by_one = [small.draw(words[[i]], stream, addresses[[i]])[0] for i in range(count)]
    assert one_by_one == drawn.tolist()
    assert small.entries <= WORDS < whole.entries
    unclear = DistanceDraws(PLACES, DECLINES[name])
    unclear._table._doubt = np.uint64(2**64 - 1)
    monkeypatch.setattr(PLACES.__class__, "dimensions", property(lambda _: 2**60))  # for chances
    assert unclear.draw(words, stream, addresses).tolist() == drawn.tolist()


@pytest.mark.parametrize("name", DECLINES)
def test_thresholds_err_by_less_than_their_bound(name: str) -> None:
    # Kills: a bound without a term that counts, thresholds from sums of too few words.
    decline = DECLINES[name]
    draws = DistanceDraws(PLACES, decline)
    draws.add(np.arange(WORDS, dtype=np.int32))
    table, radius = draws._table, decline.radius(WORDS)
    for word in range(0, WORDS, 6):
        ids = table.outcomes(word)
        masses = Masses(decline.rate, radius, PLACES.exactly(word, ids), WORDS)
        exact = [masses.survival(index, 200) for index in range(len(ids) + 1)]
        total = sum(low for low, _ in exact)
        first = int(table._starts[table._rows[word], 0])
        for place, low in enumerate(itertools.accumulate(low for low, _ in exact[:-1])):
            true = Fraction(low, total) * 2**64
            assert abs(int(table._thresholds[first + place]) - true) <= int(draws._doubt) / 2


def test_a_bound_covers_the_roots_of_squares_that_are_no_squares() -> None:
    masses = Masses(Fraction(1), Fraction(3), [Fraction(2), Fraction(4)], 5)
    root, whole, rest = (masses.survival(index, 150) for index in range(3))
    scale = 2.0**150
    base = math.exp(-3)
    for (low, high), true in (
        (root, math.exp(-math.sqrt(2)) - base),
        (whole, math.exp(-2) - base),
        (rest, 5 * base),
    ):
        assert low <= high <= low + 16
        assert math.isclose(low / scale, true, rel_tol=1e-12)


@pytest.mark.parametrize("name", DECLINES)
def test_no_pair_of_words_loses_more_than_its_distance(name: str) -> None:
    # Kills: any constant in a weight that is not the paper's; the planted faults have a peer's.
    decline = DECLINES[name]
    draws = DistanceDraws(PLACES, decline)
    assert largest_loss(draws, PLACES, WORDS) <= float(decline.epsilon) * (1 + 1e-9)
    logs = log_laws(draws, PLACES, np.arange(WORDS, dtype=np.int32))
    assert np.allclose(np.exp(logs), law(decline), rtol=1e-9, atol=0)
    # The loss also stays below epsilon times gamma.
    far = math.inf if decline.truncation is None else float(decline.truncation)
    losses = np.abs(logs[:, None] - logs).max(axis=2)
    assert (losses <= float(decline.epsilon) * np.minimum(APART, far) + 1e-9).all()


def test_words_at_one_place_have_one_law() -> None:
    twice = Within(np.concatenate([ROOM[:9], ROOM[:9]]))
    draws = DistanceDraws(twice, DECLINES["tem"])
    assert largest_loss(draws, twice, 18) <= float(EPSILON)


@pytest.mark.parametrize("words", [2, 60, 341_479])
@pytest.mark.parametrize("epsilon", [Fraction(1, 3), Fraction(10)])
def test_gamma_holds_farther_words_to_beta(words: int, epsilon: Fraction) -> None:
    # Kills: V for V - 1 the other way, ln BETA alone, epsilon for epsilon / 2.
    def farther(gamma: Fraction) -> float:
        others = (words - 1) * math.exp(-float(epsilon * gamma) / 2)
        return others / (1 + others)

    gamma = radius_of(epsilon, words)
    assert farther(gamma) <= float(BETA)
    assert farther(gamma * Fraction(9999, 10_000)) > float(BETA)


def test_logarithms_are_rounded_up_to_six_digits() -> None:
    for value in (Fraction(2), Fraction(3, 2), Fraction(10**9)):
        above = log_above(value)
        assert 0 <= float(above) - math.log(value) < 1e-4
        assert len(str(above * 10**6).split("/")) == 1


def test_an_error_bound_beyond_64_bits_leaves_nothing_clear() -> None:
    assert distance_tables.doubt_of(Fraction(10**15), 300) == 2**64 - 1
    assert distance_tables.doubt_of(Fraction(20), 100) < 2**25
