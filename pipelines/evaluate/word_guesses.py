"""The best attacker of released words: the prior it has, and the law that it computes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy import stats

from quietcorpus.evaluation.attacks.best_guess import (
    BestGuess,
    computed,
    estimated,
    success_bound,
)
from quietcorpus.evaluation.attacks.inversion import zipf
from quietcorpus.evaluation.attacks.linkage import Score
from quietcorpus.evaluation.attacks.text_prior import TextPrior, guessed_together, learnt
from quietcorpus.evaluation.attacks.tradeoff import BoundedRange, Curve, Outcomes
from quietcorpus.evaluation.attacks.word_laws import (
    ChosenNoise,
    CodeNoise,
    DrawnLaw,
    Law,
    Noise,
    SampledLaw,
    VectorNoise,
    affordable_draws,
    euclidean,
    hamming,
    signs,
)
from quietcorpus.evaluation.attacks.word_linkage import (
    Originals,
    by_likelihood,
    by_points,
    classes,
)
from quietcorpus.evaluation.results import CONFIDENCE
from quietcorpus.indexes.word_index import WordIndex
from quietcorpus.pipelines.artefacts.distances import distance
from quietcorpus.pipelines.evaluate.corpus import of_option
from quietcorpus.pipelines.kinds.word_meaning import gamma_of
from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.privatizers.words import WordMechanism, WordsParameters, decline_of
from quietcorpus.transforms.reading.documents import Corpus
from quietcorpus.transforms.reading.sources import batches

DEFINED = "one word of one document"
BEYOND = (
    "The definition's neighbours may differ in any words of one document: an attacker may tell "
    "those apart more often."
)
SECRETS = 1 << 15
"""The most words that the attacker considers, the likeliest ones."""
DRAWS = 1 << 14
"""Twice the points that say how well an estimated law's guesses do."""

_PAIRS, _ROWS = 256, 32  # of words; the rows of laws that are computed whole

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
        secrets, prior = self._secrets, self._prior
        own = mechanism_of(parameters, self._index, epsilon, secrets)
        if parameters.mechanism is WordMechanism.BRR:
            bits = signs(self._index.codes[secrets])
            bound = success_bound(
                lambda some: np.exp(-epsilon * hamming(bits[some], bits).astype(np.float64)), prior
            )
        else:
            reach = own.gamma if isinstance(own, DrawnLaw) else np.inf
            bound = success_bound(self._kernel_of_vectors(epsilon, reach), prior)
        if isinstance(own, DrawnLaw):
            return Attack(own, computed(own, prior), self._of_all(bound))
        generator = np.random.default_rng(self._seed)
        law = SampledLaw(own, prior, _draws(self._index, parameters), generator)
        best = estimated(law, own, prior, DRAWS // 2, CONFIDENCE, generator)
        return Attack(law, best, self._of_all(bound))

    def _kernel_of_vectors(
        self, epsilon: float, gamma: float
    ) -> Callable[[slice], npt.NDArray[np.float64]]:
        """Return exp(-epsilon d) of secrets, for `success_bound`."""
        vectors = self._index.vectors[self._secrets].astype(np.float64)
        return lambda some: np.exp(-epsilon * np.minimum(euclidean(vectors[some], vectors), gamma))

    def _of_all(self, bound: float) -> float:
        """Return a bound on words of the whole prior, the others of which are given up."""
        return min(1.0, bound + 1 - float(self._prior.sum()))


class TextAttacker:
    """An attacker who holds the original texts, and knows the mechanism and the index."""

    def __init__(self, index: WordIndex, originals: Originals) -> None:
        self._index, self._originals = index, originals
        self._seed = np.random.SeedSequence()

    @property
    def lengths(self) -> Ids:
        """Return the lengths of documents, int64 (n,)."""
        return self._originals.lengths

    def likelihoods(self, parameters: WordsParameters, released: Ids) -> Score:
        """Return the score of originals by the probability of what was released."""
        return by_likelihood(
            self._originals,
            released,
            lambda length: self._law(parameters, _epsilon_of(parameters, length)),
            shared=parameters.per == "document",
        )

    def seeing_noise(self, parameters: WordsParameters) -> Score | None:
        """Return the score by fresh noise itself, which words follow from; None without noise."""
        originals, points = self._originals, None
        generator = np.random.default_rng()
        of = {}
        for length, groups in classes(originals, shared=parameters.per == "document"):
            noise = self._noise(parameters, _epsilon_of(parameters, length))
            if isinstance(noise, DrawnLaw):
                return None
            of[length] = noise
            own = np.concatenate([originals.tokens(members).ravel() for members in groups])
            drawn = noise.drawn(np.maximum(originals.words[own], 0).astype(np.int64), generator)
            if points is None:
                points = np.zeros((len(originals.words), *drawn.shape[1:]), dtype=drawn.dtype)
            points[own] = drawn
        if points is None:
            return None
        shared = parameters.per == "document"
        return by_points(originals, points, of.__getitem__, shared=shared)

    def told_apart(self, parameters: WordsParameters) -> Outcomes:
        """Return the curve of pairs of documents that differ in one word, the sample's or another.

        The attacker knows the two, and sees the noise itself.
        """
        index, generator = self._index, np.random.default_rng(self._seed)
        known = self._originals.words[self._originals.words >= 0].astype(np.int64)
        some = generator.choice(known, _PAIRS)
        others = (some + generator.integers(1, len(index.vocabulary), _PAIRS)) % len(
            index.vocabulary
        )
        epsilon = _epsilon_of(parameters, float(np.median(self._originals.lengths)))
        match parameters.mechanism:
            case WordMechanism.MADLIB | WordMechanism.VICKREY:
                apart = np.linalg.norm(
                    index.vectors[some].astype(np.float64) - index.vectors[others], axis=1
                )
                return Outcomes.of_euclidean(epsilon, index.manifest.dimensions, apart)
            case WordMechanism.BRR:
                bits = np.bitwise_count(index.codes[some] ^ index.codes[others]).sum(axis=1)
                pairs = [_flips(epsilon, int(size)) for size in bits]
                return Outcomes.of_pairs(pairs, epsilon * max(1, int(bits.max())))
            case WordMechanism.TEM | WordMechanism.EXPONENTIAL:
                some, others = some[:_ROWS], others[:_ROWS]
                law = self._noise(parameters, epsilon, np.unique([some, others]))
                assert isinstance(law, DrawnLaw)
                rows = law.chances(np.arange(law.size)).T
                places = (np.searchsorted(law.secrets, each) for each in (some, others))
                losses = [(rows[one], rows[other]) for one, other in zip(*places, strict=True)]
                most = max(float(np.abs(np.log(a / b)).max()) for a, b in losses)
                return Outcomes.of_pairs(losses, most or 1.0)

    def worst(self, parameters: WordsParameters) -> Curve:
        """Return the curve of the two words of the index that are farthest apart."""
        manifest, epsilon = self._index.manifest, float(parameters.epsilon)
        farthest = distance(manifest, parameters.mechanism, "maximum")
        match parameters.mechanism:
            case WordMechanism.MADLIB | WordMechanism.VICKREY:
                apart = np.array([float(farthest)])
                return Outcomes.of_euclidean(epsilon, manifest.dimensions, apart)
            case WordMechanism.BRR:
                return Outcomes(*_flips(epsilon, math.ceil(farthest)))
            case WordMechanism.TEM | WordMechanism.EXPONENTIAL:
                gamma = gamma_of(parameters, manifest)
                return BoundedRange(epsilon * float(min(farthest, gamma or farthest)))

    def _noise(
        self, parameters: WordsParameters, epsilon: float, secrets: Ids | None = None
    ) -> Noise | DrawnLaw:
        own = self._originals.secrets if secrets is None else secrets
        return mechanism_of(parameters, self._index, epsilon, own)

    @lru_cache(maxsize=2)  # noqa: B019 - as above
    def _law(self, parameters: WordsParameters, epsilon: float) -> Law:
        own = self._noise(parameters, epsilon)
        if isinstance(own, DrawnLaw):
            return own
        laws = len(classes(self._originals, shared=parameters.per == "document"))
        draws = _draws(self._index, parameters, laws)
        generator = np.random.default_rng(self._seed)
        return SampledLaw(own, self._originals.frequencies, draws, generator, links=True)


def mechanism_of(
    parameters: WordsParameters, index: WordIndex, epsilon: float, secrets: Ids
) -> Noise | DrawnLaw:
    """Return the mechanism as an attacker knows it: its law, or its noise and its search.

    `epsilon` is that of a word, and `secrets` are the words that are considered.
    """
    match parameters.mechanism:
        case WordMechanism.MADLIB:
            search = parameters.search_of(index)
            return VectorNoise(index.vectors, epsilon, secrets, search)
        case WordMechanism.VICKREY:
            assert parameters.tuning is not None
            several = parameters.vector_search_of(index)
            return ChosenNoise(index.vectors, epsilon, secrets, several, parameters.tuning)
        case WordMechanism.BRR:
            return CodeNoise(index.codes, epsilon, secrets, parameters.search_of(index))
        case WordMechanism.TEM | WordMechanism.EXPONENTIAL:
            size, given = len(index.vocabulary), parameters.truncation
            decline = decline_of(parameters.mechanism, Fraction(epsilon), given, size)
            gamma = np.inf if decline.truncation is None else float(decline.truncation)
            return DrawnLaw(index.vectors, epsilon, gamma, secrets)


def _epsilon_of(parameters: WordsParameters, length: float) -> float:
    shares = max(1.0, length) if parameters.per == "document" else 1.0
    return float(parameters.epsilon) / shares


def _draws(index: WordIndex, parameters: WordsParameters, laws: int = 1) -> int:
    codes = parameters.mechanism is WordMechanism.BRR
    numbers = index.manifest.bits // 64 if codes else index.manifest.dimensions
    return affordable_draws(len(index.vocabulary), numbers, laws)


def _flips(epsilon: float, bits: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the chances of how many of some bits agree with a code, for it and its opposite."""
    kept = 1 / (1 + math.exp(-epsilon))
    agreeing = np.arange(bits + 1)
    return stats.binom.pmf(agreeing, bits, kept), stats.binom.pmf(agreeing, bits, 1 - kept)
