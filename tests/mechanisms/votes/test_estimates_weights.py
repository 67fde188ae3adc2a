"""The weights of public texts: 1 on average, and alike for every label."""

from __future__ import annotations

import numpy as np

from quietcorpus.mechanisms.votes.estimates import weights

LEAST = 6459
"""A sum that just stands out; any would do."""


def test_weights_are_shares_of_mean_1() -> None:
    # Kills: weights that are not 1 on average, or of what does not stand out.
    noisy = np.array([[LEAST - 1, LEAST, 3 * LEAST, -9 * LEAST], [0, 0, 0, 0]])
    assert weights(noisy, noisy >= LEAST).tolist() == [[0, 0.5, 1.5, 0], [0, 0, 0, 0]]
    assert not weights(noisy, noisy > 9 * LEAST).any()


def test_every_label_weighs_the_same() -> None:
    # Kills: a label that a classifier forgets, for it has fewer texts or votes.
    both = np.array([[LEAST, 3 * LEAST], [4 * LEAST, 0], [0, 0]])
    assert weights(both, both > 0).tolist() == [[0.375, 1.125], [1.5, 0], [0, 0]]
