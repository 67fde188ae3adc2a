"""Noisy votes for the texts of a pool, and the rows that a release makes of them by each rule."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from quietcorpus.mechanisms.ballots import Sums
from quietcorpus.mechanisms.vote_estimates import smoothed
from quietcorpus.mechanisms.vote_weights import weights

HIGHER = 4
"""Deviations of a threshold that fewer texts pass by chance: one in 31,574."""


class Rows(NamedTuple):
    """Texts of the pool with labels and weights, from which a classifier learns."""

    texts: np.ndarray
    labels: np.ndarray
    weights: np.ndarray

    def share(self, reviews: np.ndarray) -> float:
        """Return the share of the weight that falls on reviews."""
        return float(self.weights[reviews[self.texts]].sum() / max(1e-9, self.weights.sum()))


class Outcome(NamedTuple):
    """Noisy sums of some texts of the pool, the deviation of their noise, and embeddings.

    `least` is the sum from which on a text stands out.
    """

    texts: np.ndarray
    noisy: Sums
    deviation: Fraction
    vectors: np.ndarray
    least: float

    def released(self) -> Rows:
        """Take the texts that stand out."""
        return self._of(np.where(self.noisy >= self.least, self.noisy, 0))

    def any(self) -> Rows:
        """Take the texts that have a vote."""
        return self._of(self.noisy)

    def higher(self) -> Rows:
        """Take the texts that pass the higher threshold."""
        return self._replace(least=HIGHER * float(self.deviation)).released()

    def smoothed(self) -> Rows:
        """Take those whose smoothed votes stand out."""
        return self._of(smoothed(self.noisy, self.vectors, self.deviation))

    def by_lead(self) -> Rows:
        """Take each text once, with the label of more votes."""
        lead = (self.noisy[1] - self.noisy[0]).astype(float)
        return Rows(self.texts, (lead > 0).astype(int), np.abs(lead) / np.abs(lead).mean())

    def _of(self, given: Sums) -> Rows:
        labels, found = np.nonzero(given)
        return Rows(self.texts[found], labels, weights(given, given > 0)[given > 0])
