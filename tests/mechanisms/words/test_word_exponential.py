"""The exponential mechanism over a vocabulary: its guarantee, on all pairs of words."""

from __future__ import annotations

import numpy as np
import pytest
from drawn_words import DECLINES, PLACES, WORDS, law

from quietcorpus.mechanisms.words.distance_draws import DistanceDraws
from quietcorpus.pipelines.kinds.words.laws import largest_loss, log_laws


@pytest.mark.parametrize("name", ["exponential", "exponential beyond its table"])
def test_no_pair_of_words_loses_more_than_its_distance(name: str) -> None:
    # Kills: any constant in a weight that is not the paper's; the planted faults have a peer's.
    decline = DECLINES[name]
    draws = DistanceDraws(PLACES, decline)
    assert largest_loss(draws, PLACES, WORDS) <= float(decline.epsilon) * (1 + 1e-9)
    logs = log_laws(draws, PLACES, np.arange(WORDS, dtype=np.int32))
    assert np.allclose(np.exp(logs), law(decline), rtol=1e-9, atol=0)
