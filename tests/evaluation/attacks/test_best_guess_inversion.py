"""Priors over words, and bands of frequency."""

from __future__ import annotations

import numpy as np
import pytest

from quietcorpus.evaluation.attacks.best_guess import by_frequency, zipf


def test_bands_hold_their_last_rank() -> None:
    # Kills: an edge on the wrong side, zero-based ranks, an empty band, another order.
    ranks = np.array([10_001, 1, 100, 101, 1000, 10_000])
    assert {
        label: np.flatnonzero(band).tolist() for label, band in by_frequency(ranks).items()
    } == {
        "1-100": [1, 2],
        "101-1,000": [3, 4],
        "1,001-10,000": [5],
        "beyond 10,000": [0],
    }
    few = by_frequency(ranks[:2], (5, 9))
    assert [(label, band.tolist()) for label, band in few.items()] == [
        ("1-5", [False, True]),
        ("beyond 9", [True, False]),
    ]


def test_the_prior_falls_with_rank() -> None:
    # Kills: the order of words for their ranks, another shift, weights that are not a probability.
    prior = zipf(np.array([3, 1, 2]))
    assert prior.sum() == pytest.approx(1)
    np.testing.assert_allclose(prior / prior[1], [3.7 / 5.7, 1, 3.7 / 4.7])
