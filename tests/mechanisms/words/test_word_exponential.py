"""The exponential mechanism over a vocabulary: its guarantee, on all pairs of words."""

from __future__ import annotations

import numpy as np
import pytest
from drawn_words import APART, DECLINES, PLACES, WORDS, law

from quietcorpus.mechanisms.words.distance_draws import DistanceDraws
from quietcorpus.pipelines.kinds.words.laws import largest_loss


@pytest.mark.parametrize("name", ["exponential", "exponential beyond its table"])
def test_no_pair_of_words_loses_more_than_its_distance(name: str) -> None:
    # Kills: any constant in a weight that is not the paper's; the planted faults have a peer's.
    decline = DECLINES[name]
    draws = DistanceDraws(PLACES, decline)
    logs = draws.log_laws(np.arange(WORDS, dtype=np.int32))
    assert largest_loss(logs, APART) <= float(decline.epsilon) * (1 + 1e-9)
    assert np.allclose(np.exp(logs), law(decline), rtol=1e-9, atol=0)
