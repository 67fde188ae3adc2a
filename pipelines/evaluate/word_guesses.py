"""The best attacker of released words: the prior it has, and the law that it computes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from quietcorpus.evaluation.attacks.best_guess import (
    BestGuess,
    computed,
    estimated,
    success_bound,
)
from quietcorpus.evaluation.attacks.inversion import zipf
from quietcorpus.evaluation.attacks.text_prior import TextPrior, guessed_together, learnt
from quietcorpus.evaluation.attacks.word_laws import (
    ChosenNoise,
    CodeNoise,
    DrawnLaw,
    Law,
    Noise,
    SampledLaw,
    VectorNoise,
    euclidean,
    hamming,
    signs,
)
from quietcorpus.evaluation.results import CONFIDENCE
from quietcorpus.indexes.word_index import WordIndex
from quietcorpus.pipelines.evaluate.corpus import of_option
from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.privatizers.words import WordMechanism, WordsParameters, decline_of
from quietcorpus.transforms.reading.documents import Corpus
from quietcorpus.transforms.reading.sources import batches

SECRETS = 1 << 15
"""The most words that the attacker considers, the likeliest ones."""
DRAWS = 1 << 14
"""Points by which a law is estimated; half as many again say how well its guesses do."""

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Attack:
    """An attacker on one law.

    Attributes:
        law: what it knows or estimates of the mechanism.
        best: its guesses, word by word, and their success.
        bound: the most that the guarantee and the prior allow.
    """

    law: Law
    best: BestGuess
    bound: float


def by_places(size: int) -> TextPrior:
    """Return the prior by words' places in an index of `size` words; of pairs it says nothing."""
    pairs = sp.csr_array((size, size), dtype=np.float64)
    return TextPrior(zipf(np.arange(1, size + 1)), pairs, np.ones(size))


def by_text(place: str, column: str, parameters: WordsParameters, index: WordIndex) -> TextPrior:
    """Learn the prior from public documents; raises InputError for such as cannot be read.

    Words that the index lacks are left out, as in a release that drops them.
    """
    offsets, words = [np.zeros(1, dtype=np.int64)], []
    corpus = Corpus(place, column)
    try:
        for documents in batches(corpus):
            starts, found = index.vocabulary.look_up(parameters.tokenizer.tokenize(documents.texts))
            offsets.append(starts[1:] + offsets[-1][-1])
            words.append(found)
    except InputError as error:
        raise of_option("public_text", error) from None
    known = np.concatenate(words) if words else np.empty(0, dtype=np.int32)
    if not len(known):
        raise InputError(f"public_text: {place} has no word that the release knows; check it")
    return learnt(np.concatenate(offsets), known, len(index.vocabulary))


class WordAttacker:
    """An attacker who knows the mechanism, the index and a public prior."""

    def __init__(self, index: WordIndex, prior: TextPrior) -> None:
        likeliest = np.argsort(-prior.words, kind="stable")[:SECRETS]
        self._index, self._secrets = index, np.sort(likeliest)
        self._prior = prior.words[self._secrets]
        self._text = prior.among(self._secrets)
        self._seed = np.random.SeedSequence()
        self.likeliest = int(likeliest[0])
        self.floor = float(prior.words.max())

    @property
    def knows_pairs(self) -> bool:
        """Return whether it knows which words follow which."""
        return bool(self._text.pairs.nnz)

    def together(self, law: Law, outputs: Ids) -> Ids:
        """Guess the words of a document from all that was released of it, int64 (L,)."""
        if not len(outputs):
            return outputs
        distinct, places = np.unique(outputs, return_inverse=True)
        chances = law.chances(distinct).astype(np.float64)
        return self._secrets[guessed_together(self._text, chances[places])]

    @lru_cache(maxsize=2)  # noqa: B019 - as long-lived as the study; settings come one by one
    def against(self, parameters: WordsParameters, epsilon: float) -> Attack:
        """Return the attack on a law, for words of an epsilon."""
        index, secrets = self._index, self._secrets
        match parameters.mechanism:
            case WordMechanism.MADLIB:
                search = parameters.search_of(index)
                noise = VectorNoise(index.vectors, epsilon, secrets, search)
                return self._of_noise(noise, self._kernel_of_vectors(epsilon, np.inf))
            case WordMechanism.VICKREY:
                assert parameters.tuning is not None
                several = parameters.vector_search_of(index)
                chosen = ChosenNoise(index.vectors, epsilon, secrets, several, parameters.tuning)
                return self._of_noise(chosen, self._kernel_of_vectors(epsilon, np.inf))
            case WordMechanism.BRR:
                search = parameters.search_of(index)
                own = signs(index.codes[secrets])
                return self._of_noise(
                    CodeNoise(index.codes, epsilon, secrets, search),
                    lambda some: np.exp(-epsilon * hamming(own[some], own).astype(np.float64)),
                )
            case WordMechanism.TEM | WordMechanism.EXPONENTIAL:
                size, given = len(index.vocabulary), parameters.truncation
                decline = decline_of(parameters.mechanism, Fraction(epsilon), given, size)
                gamma = np.inf if decline.truncation is None else float(decline.truncation)
                law = DrawnLaw(index.vectors, epsilon, gamma, secrets)
                bound = success_bound(self._kernel_of_vectors(epsilon, gamma), self._prior)
                return Attack(law, computed(law, self._prior), self._of_all(bound))

    def _of_noise(self, noise: Noise, kernel: Callable[[slice], npt.NDArray[np.float64]]) -> Attack:
        generator = np.random.default_rng(self._seed)
        law = SampledLaw(noise, self._prior, DRAWS, generator)
        best = estimated(law, noise, self._prior, DRAWS // 2, CONFIDENCE, generator)
        return Attack(law, best, self._of_all(success_bound(kernel, self._prior)))

    def _kernel_of_vectors(
        self, epsilon: float, gamma: float
    ) -> Callable[[slice], npt.NDArray[np.float64]]:
        """Return exp(-epsilon d) of secrets, for `success_bound`."""
        vectors = self._index.vectors[self._secrets].astype(np.float64)
        return lambda some: np.exp(-epsilon * np.minimum(euclidean(vectors[some], vectors), gamma))

    def _of_all(self, bound: float) -> float:
        """Return a bound on words of the whole prior, the others of which are given up."""
        return min(1.0, bound + 1 - float(self._prior.sum()))
