"""Tables of words' laws: their thresholds, and the bound on what these err by."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from drawn_words import DECLINES, PLACES, WORDS

from quietcorpus.mechanisms.words import distance_draws as distance_tables
from quietcorpus.mechanisms.words.distance_draws import DistanceDraws, Masses


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


def test_an_error_bound_beyond_64_bits_leaves_nothing_clear() -> None:
    assert distance_tables.doubt_of(Fraction(10**15), 300) == 2**64 - 1
    assert distance_tables.doubt_of(Fraction(20), 100) < 2**25
