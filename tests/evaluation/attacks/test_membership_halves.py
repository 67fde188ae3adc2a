"""Random halves: every class is halved, and every document is as likely as any other."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from quietcorpus.evaluation.attacks.membership import half

ALPHA = 1e-6


@pytest.mark.parametrize("names", [np.array([7, 2, 9]), np.array(["b", "a", "c"])])
def test_every_class_and_the_whole_are_halved(names: np.ndarray) -> None:
    # Kills: halves that are not stratified, an odd class rounded by more than one.
    labels = np.random.default_rng().permutation(np.repeat(names, [1, 5, 40]))
    chosen = half(labels, np.random.default_rng())
    assert chosen.sum() == 23
    for name, size in zip(names, [1, 5, 40], strict=True):
        assert chosen[labels == name].sum() in (size // 2, -(-size // 2))


def test_every_document_is_as_likely_in_as_out() -> None:
    # Kills: the first of every class always in, odd classes always rounded up. Each of the 5
    # counts is Binomial(400, 1/2); the two tails of the five are 1e-6 together.
    generator = np.random.default_rng()
    labels = np.array([0, 1, 1, 2, 2])
    inside = sum(half(labels, generator).astype(np.int64) for _ in range(400))
    low, high = stats.binom.ppf([ALPHA / 10, 1 - ALPHA / 10], 400, 0.5)
    assert ((low <= inside) & (inside <= high)).all()
    assert not low <= 400 <= high  # control: always in


def test_every_pair_of_a_class_is_as_likely_in_together() -> None:
    # Kills: every other document in the order given, so that neighbours never meet. Each of the 6
    # pairs of a class of 4 is in together with 1 / 6; the two tails of the six are 1e-6 together.
    generator = np.random.default_rng()
    together = np.zeros((4, 4), dtype=np.int64)
    for _ in range(600):
        chosen = half(np.zeros(4, dtype=np.int64), generator)
        together += np.outer(chosen, chosen)
    low, high = stats.binom.ppf([ALPHA / 12, 1 - ALPHA / 12], 600, 1 / 6)
    pairs = together[np.triu_indices(4, 1)]
    assert ((low <= pairs) & (pairs <= high)).all()
    assert not low <= 0 <= high  # control: neighbours never meet
