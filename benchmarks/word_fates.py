"""The fates of a sample of words, and the epsilons at which mechanisms are compared by them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
from word_judges import OtherEmbedding, WordNet

from quietcorpus.evaluation.simulation import (
    BrrSimulator,
    MadlibSimulator,
    Simulator,
    VickreySimulator,
)
from quietcorpus.indexes.engines import vector_search
from quietcorpus.indexes.search import EXACT
from quietcorpus.indexes.within import Within
from quietcorpus.indexes.word_index import WordIndex
from quietcorpus.mechanisms.tem import radius_of
from quietcorpus.pipelines.card.document_losses import DocumentBudget, document_epsilon
from quietcorpus.pipelines.kinds.words.job import law_of
from quietcorpus.pipelines.prepare.distances import distance, matched
from quietcorpus.transforms.privatizers.words import WordMechanism

WORDS, DRAWS, NEIGHBOURS = 512, 1_000, 10
LENGTH, DELTA = 200, Fraction(1, 10**6)  # reviews have at most so many words
FEWER = 5  # draws are searched for where the choice needs distances, which takes long
STEPS = 14
FATES = ("unchanged", "near synonym", "same part of speech", "anything else")
Mechanism = tuple[WordMechanism, Fraction | None]
"""A mechanism, and its truncation (None for none, or the paper's rule) or, for Vickrey, its t."""


class Fates:
    """A sample of words, and what two judges say of all words beside each."""

    def __init__(self, index: WordIndex, other: str, wordnet: str) -> None:
        words = index.vocabulary.terms.to_pylist()
        embedding, parts = OtherEmbedding(other, words, NEIGHBOURS), WordNet(wordnet, words)
        known = np.flatnonzero(embedding.known & parts.known)
        self.index, self.known = index, len(known)
        self._search = vector_search(EXACT, index.vectors)
        self.words = np.sort(np.random.default_rng(1).choice(known, WORDS, replace=False))
        every = Within(index.vectors).within(self.words.astype(np.int32), np.inf)
        self._apart = np.sqrt(every[2]).reshape(WORDS, -1)
        self._of = np.full((WORDS, len(words)), FATES.index("anything else"), dtype=np.int8)
        self._synonyms = np.zeros((WORDS, len(words)), dtype=bool)
        for row, word in enumerate(self.words):
            self._of[row, parts.same_part(word)] = FATES.index("same part of speech")
            self._of[row, embedding.near(word)] = FATES.index("near synonym")
            self._of[row, word] = FATES.index("unchanged")
            self._synonyms[row] = parts.synonyms(word)
            self._synonyms[row, word] = False

    def simulator(self, mechanism: Mechanism) -> Simulator:
        """Return a simulator of Madlib, BRR or Vickrey's choice."""
        name, tuning = mechanism
        if name is WordMechanism.MADLIB:
            return MadlibSimulator(self.index.vectors)
        if name is WordMechanism.VICKREY:
            assert tuning is not None
            return VickreySimulator(self.index.vectors, self._search, tuning)
        return BrrSimulator(self.index.codes)

    def gamma(self, mechanism: Mechanism, epsilon: float) -> float:
        """Return the distance beyond which weights decline no further."""
        name, truncation = mechanism
        if name is WordMechanism.EXPONENTIAL:
            return np.inf
        size = len(self.index.vocabulary)
        return float(truncation or radius_of(Fraction(epsilon), size))

    def chances(self, mechanism: Mechanism, epsilon: float, draws: int) -> npt.NDArray[Any]:
        """Return the chances of all words for each word of the sample, (n, V).

        Where words are drawn by distances, they are computed; else they are shares of `draws`.
        """
        if mechanism[0] in (WordMechanism.TEM, WordMechanism.EXPONENTIAL):
            apart = np.minimum(self._apart, self.gamma(mechanism, epsilon))
            weights = np.exp(-epsilon / 2 * apart)
            return weights / weights.sum(axis=1, keepdims=True)
        if mechanism[0] is WordMechanism.VICKREY:
            draws //= FEWER
        found = np.zeros((WORDS, len(self.index.vocabulary)), dtype=np.float32)
        for start in range(0, WORDS, 64):
            words = self.words[start : start + 64]
            generator = np.random.default_rng(start)  # for all epsilons alike
            outputs = self.simulator(mechanism).outputs(words, [epsilon], draws, generator)[0]
            for row, own in enumerate(outputs, start):
                found[row] = np.bincount(own, minlength=found.shape[1]) / draws
        return found

    def unchanged(self, mechanism: Mechanism, epsilon: float) -> float:
        """Return N_w, the mean over the sample's words."""
        chances = self.chances(mechanism, epsilon, DRAWS // 4)
        return float(chances[np.arange(WORDS), self.words].mean())

    def shares(self, mechanism: Mechanism, epsilon: float) -> dict[str, float]:
        """Return the share of each fate, and of WordNet's synonyms."""
        return self._shares(self.chances(mechanism, epsilon, DRAWS))

    def by_chance(self) -> dict[str, float]:
        """Return the shares of words that are drawn uniformly."""
        size = len(self.index.vocabulary)
        return self._shares(np.full((WORDS, size), 1 / size))

    def _shares(self, chances: npt.NDArray[Any]) -> dict[str, float]:
        by_fate = [(chances * (self._of == fate)).sum(axis=1) for fate in range(len(FATES))]
        found = {fate: float(own.mean()) for fate, own in zip(FATES, by_fate, strict=True)}
        near = by_fate[FATES.index("near synonym")]
        # Words are the sample; the draws of each only add to the spread between them.
        found["near, half of 95 %"] = float(1.96 * near.std(ddof=1) / np.sqrt(WORDS))
        found["WordNet synonym"] = float((chances * self._synonyms).sum(axis=1).mean())
        return found

    def of_share(self, mechanism: Mechanism, share: float) -> float:
        """Find the epsilon at which so many words come back unchanged."""
        low, high = 0.05, 40.0
        for _ in range(STEPS):
            middle = (low * high) ** 0.5
            low, high = (
                (middle, high) if self.unchanged(mechanism, middle) < share else (low, middle)
            )
        return (low * high) ** 0.5

    def of_mean_loss(self, mechanism: Mechanism, madlib: Fraction) -> float:
        """Return the epsilon at which epsilon times the mean distance is Madlib's."""
        if mechanism[0] is not WordMechanism.BRR:
            return float(madlib)
        manifest = self.index.manifest
        return float(matched(madlib, WordMechanism.MADLIB, WordMechanism.BRR, "mean", manifest))

    def document_loss(self, mechanism: Mechanism, epsilon: Fraction, by: str) -> Fraction:
        """Return what documents are protected by, at a distance of words."""
        manifest = self.index.manifest
        law = law_of(mechanism[0], manifest, mechanism[1])
        apart = distance(manifest, mechanism[0], by)
        return document_epsilon(law)(epsilon, apart, LENGTH, DELTA)

    def of_document_loss(self, mechanism: Mechanism, target: Fraction, by: str) -> float:
        """Return the largest epsilon at which documents keep to a target, at a distance."""
        manifest = self.index.manifest
        law = law_of(mechanism[0], manifest, mechanism[1])
        apart = distance(manifest, mechanism[0], by)
        return float(DocumentBudget(target, DELTA, LENGTH).word_epsilon(law, apart))
