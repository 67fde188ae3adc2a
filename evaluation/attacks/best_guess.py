"""The best attacker on released words, and the priors that it starts from.

Word inversion: priors over words, and words by how frequent they are.

`best_guess` guesses the original word from the one that a word mechanism released.

An attacker's prior on a text: how frequent words are, and which follow which.

Words of a document are a chain: word w is followed by w' with the chance

    P(w' | w) = (c(w, w') + t(w) pi(w')) / (c(w) + t(w)),

where c counts pairs of a public text, t(w) is the number of different words that follow w there,
and pi is how frequent words are (Witten and Bell 1991). The words of a released document are
guessed together: for each, the likeliest one given all that was released, by the forward and the
backward pass of a hidden Markov model (Rabiner 1989). No guess from the same prior and law is right
more often, word by word.

The best attacker on a released word: the likeliest word under a prior and the mechanism's law.

Given the output x, the attacker who knows the law P(x | w) and a prior pi over words is right most
often by guessing the w of largest pi(w) P(x | w) (Bayes; Chatzikokolakis, Palamidessi and
Panangaden 2008). Its success, over words from the prior and outputs from the law, is

    S = sum over x of max over w of pi(w) P(x | w),

and no other attacker with this prior has more. Another prior, or knowledge of other words, may.

If an attacker considers some of the words alone, it loses at most the prior of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from ..intervals import of_share
from .word_laws import (
    DrawnLaw,
    Floats,
    Ids,
    Law,
    PointNoise,
)

_SHIFT = 2.7
_EDGES = (100, 1_000, 10_000)


def zipf(ranks: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Compute a public prior: probabilities proportional to 1 / (rank + 2.7), which sum to one.

    Ranks are by frequency, 1 for the most frequent word, int64 (n,). It is Mandelbrot's (1953) form
    of Zipf's law, with the constants for English of Piantadosi (2014).
    """
    weights = 1 / (ranks + _SHIFT)
    prior: npt.NDArray[np.float64] = weights / weights.sum()
    return prior


def by_frequency(
    ranks: npt.NDArray[np.int64], edges: Sequence[int] = _EDGES
) -> dict[str, npt.NDArray[np.bool_]]:
    """Mark the words of each band of frequency, (n,); bands with words only, frequent words first.

    Args:
        ranks: int64 (n,), the rank of each word, from 1.
        edges: the last rank of each band except the open one, ascending.
    """
    places = np.searchsorted(edges, ranks)
    first = [1, *(edge + 1 for edge in edges)]
    labels = [f"{low:,}-{high:,}" for low, high in zip(first, edges, strict=False)]
    bands = enumerate([*labels, f"beyond {edges[-1]:,}"])
    inside = {label: places == number for number, label in bands}
    return {label: band for label, band in inside.items() if band.any()}


@dataclass(frozen=True)
class TextPrior:
    """The chances of n words.

    Attributes:
        words: how frequent each is, float64 (n,), which sum to one.
        pairs: c(w, w') / (c(w) + t(w)), float64 (n, n), sparse.
        rest: t(w) / (c(w) + t(w)), float64 (n,); 1 for a word that nothing followed.
    """

    words: Floats
    pairs: sp.csr_array
    rest: Floats

    def among(self, words: Ids) -> TextPrior:
        """Return the prior of some words alone, int64 (m,), ascending.

        What followed was another word gives its chance to all of them, by how frequent they are.
        """
        own = self.words[words]
        pairs = self.pairs[words][:, words].tocsr()
        rest = 1 - np.asarray(pairs.sum(axis=1)).ravel()
        return TextPrior(own / own.sum(), pairs, rest)


def learnt(offsets: npt.NDArray[np.int64], words: npt.NDArray[np.integer], size: int) -> TextPrior:
    """Learn a prior of words 0 .. `size` - 1 from public documents.

    Every word counts once more than it occurs, so that none is impossible.

    Args:
        offsets: int64 (n + 1,); document i holds the words from offsets[i] to offsets[i + 1].
        words: int (tokens,).
        size: the number of words V.
    """
    counts = np.bincount(words, minlength=size) + 1.0
    follows = np.ones(max(0, len(words) - 1), dtype=bool)
    follows[offsets[(offsets > 0) & (offsets < len(words))] - 1] = False
    first, second = words[:-1][follows], words[1:][follows]
    ones = np.ones(len(first))
    pairs = sp.coo_array((ones, (first, second)), shape=(size, size)).tocsr()
    followed, different = np.asarray(pairs.sum(axis=1)).ravel(), np.diff(pairs.indptr)
    total = np.maximum(followed + different, 1)
    rest = np.where(followed > 0, different / total, 1.0)
    pairs.data /= np.repeat(total, different)
    return TextPrior(counts / counts.sum(), pairs, rest)


def guessed_together(prior: TextPrior, chances: Floats) -> Ids:
    """Guess the words of one document from all that was released of it, int64 (L,).

    Args:
        prior: of n words.
        chances: the chance of each released word under each of the n, on a separate scale, float64
            (L, n).
    """
    forward, backward = np.empty_like(chances), np.ones_like(chances)
    expected = prior.words
    for place, seen in enumerate(chances):
        forward[place] = _scaled(expected * seen)
        expected = forward[place] @ prior.pairs + (forward[place] @ prior.rest) * prior.words
    for place in range(len(chances) - 1, 0, -1):
        seen = backward[place] * chances[place]
        backward[place - 1] = _scaled(prior.pairs @ seen + prior.rest * (prior.words @ seen))
    guesses: Ids = (forward * backward).argmax(axis=1)
    return guesses


def _scaled(values: Floats) -> Floats:
    scaled: Floats = values / values.sum()
    return scaled


_AT_ONCE = 512
_ROUNDS = 4
_MARGIN = 1e-4
"""Of a bound, for the rounding of distances: K errs by epsilon times their error."""
_NOTHING = 0.999
_PRIOR, _LEAST = 300, 1e-30
_LEAST_ADAPTED, _MOST_ADAPTED, _WORK = 20, 200, 1 << 31


class BestGuess(NamedTuple):
    """The best attacker's guesses, and how often it is right.

    Attributes:
        guesses: the word that is guessed for each output, int64 (V,).
        success: the attacker's success over the prior and the law.
        low, high: the ends between which the success of the best attacker lies.
    """

    guesses: Ids
    success: float
    low: float
    high: float


def likeliest(law: Law, prior: Floats, outputs: Ids) -> tuple[Ids, Floats]:
    """Find the likeliest secret for each output: int64 (m,), and pi(w) P(x | w), float64 (m,).

    Args:
        law: the law of outputs.
        prior: float64 (n,), of the law's secrets.
        outputs: int64 (m,).
    """
    guesses, values = np.empty(len(outputs), dtype=np.int64), np.empty(len(outputs))
    for start in range(0, len(outputs), _AT_ONCE):
        own = slice(start, start + _AT_ONCE)
        joint = law.chances(outputs[own]) * prior
        best = joint.argmax(axis=1)
        guesses[own], values[own] = law.secrets[best], joint[np.arange(len(best)), best]
    return guesses, values


def adapted(chances: npt.NDArray[np.float32], counts: Floats, prior: Floats) -> Floats:
    """Adapt a prior to what was released, by expectation and maximisation: float64 (n,).

    It is the likeliest prior, where the given one counts for `_PRIOR` words: pi(w) is in proportion
    to how many words are expected to have been w, given all that was released (Dempster, Laird and
    Rubin 1977). No true word is seen.

    Args:
        chances: of distinct outputs under each secret, each output on a separate scale, (m, n).
        counts: how often each output was released, float64 (m,).
        prior: float64 (n,).
    """
    own = prior / prior.sum()
    found, total = own, counts.sum() + _PRIOR
    for _ in range(min(_MOST_ADAPTED, max(_LEAST_ADAPTED, _WORK // chances.size))):
        expected = (counts / np.maximum(chances @ found.astype(np.float32), _LEAST)) @ chances
        found = (found * expected + _PRIOR * own) / total
    found /= found.sum()
    return np.asarray(found)


def computed(law: DrawnLaw, prior: Floats) -> BestGuess:
    """Compute the best guesses and their success, under a law that is known for every output.

    Args:
        law: the law.
        prior: float64 (n,), of the law's secrets; what it lacks of 1 is of words that are not
            considered.
    """
    guesses, values = likeliest(law, prior, np.arange(law.size))
    success = float(values.sum())
    return BestGuess(guesses, success, success, min(1.0, success + _left(prior)))


def estimated(
    law: Law,
    noise: PointNoise,
    prior: Floats,
    draws: int,
    confidence: float,
    generator: np.random.Generator,
) -> BestGuess:
    """Find guesses by an estimated law, and bound the best attacker's success from both sides.

    Of fresh points y under the prior, the chance that the guess is right, given y, is pi(w | y) of
    the guessed word. Its mean is the success of these guesses, no more than the best attacker's.
    The best attacker's is no more than that of an attacker who sees the point itself, from which
    the output follows: the mean of the largest pi(w | y). Both are means of independent numbers
    between 0 and 1, which vary no more than coins of the same mean, for which Clopper and Pearson's
    interval is. Each end errs with half of 1 - `confidence`.

    Args:
        law: the estimated law; `noise` is the mechanism that it is of.
        prior: as for `computed`.
        draws: the number of fresh points.
        confidence: that the success of the best attacker lies between the ends.
        generator: the source of the points, which had no part in the law.
    """
    guesses, _ = likeliest(law, prior, np.arange(law.size))
    places = np.searchsorted(law.secrets, guesses)
    covered = float(prior.sum())
    words = generator.choice(law.secrets, draws, p=prior / covered)
    right, seen = np.empty(draws), np.empty(draws)
    for start in range(0, draws, _AT_ONCE):
        own = slice(start, start + _AT_ONCE)
        points = noise.drawn(words[own], generator)
        posterior = noise.log_densities(points)
        posterior = prior * np.exp(posterior - posterior.max(axis=1, keepdims=True))
        posterior /= posterior.sum(axis=1, keepdims=True)
        guessed = places[noise.nearest(points)]
        right[own] = posterior[np.arange(len(guessed)), guessed]
        seen[own] = posterior.max(axis=1)
    low, _ = of_share(float(right.sum()), draws, confidence)
    _, high = of_share(float(seen.sum()), draws, confidence)
    success = covered * float(right.mean())
    return BestGuess(guesses, success, covered * low, min(1.0, covered * high + _left(prior)))


def success_bound(kernel: Callable[[slice], Floats], prior: Floats) -> float:
    """Bound every attacker's success by the prior and the loss that is stated alone.

    Let K(w, w') = exp(-epsilon d(w, w')), and let y >= 0 be weights of words with K y >= pi, word
    by word. Then the success of every attacker is at most the sum of y.

    Proof: let an attacker guess w on the set A(w) of outputs; these sets are disjoint (for chances
    of guesses, take means). Let p(w) = Pr[A(w) | w], so that the success is pi . p. For every w',
    1 >= sum over w of Pr[A(w) | w'] >= sum over w of exp(-epsilon d(w, w')) p(w), by the guarantee:
    K p <= 1, since d is symmetric. So pi . p <= (K y) . p = y . (K p) <= sum of y.

    The y here are found by rounds of y <- y pi / (K y), from y = pi, each scaled so that K y >= pi;
    the least sum is returned. At epsilon 0 it is the largest pi, and it is never above the sum of
    pi. Neither the mechanism nor the number of outputs matters: the bound holds of whatever has the
    guarantee, and so a mechanism may be far below it.

    Args:
        kernel: K for a slice of the words and all words, float64 (m, n).
        prior: float64 (n,), above zero.
    """
    bound, weights, words = float(prior.sum()), prior, np.arange(len(prior))
    starts = range(0, len(words), _AT_ONCE)
    for _ in range(_ROUNDS):
        both = np.stack([weights, np.ones_like(weights)], axis=1)
        parts = [kernel(slice(start, start + _AT_ONCE)) @ both for start in starts]
        reached, sums = np.concatenate(parts).T
        ratios = prior / reached
        bound = min(bound, float(ratios.max() * weights.sum()) * (1 + _MARGIN))
        # p = 1 / max(K 1) everywhere has K p <= 1: no bound of this kind is below pi . p.
        if bound * sums.max() * _NOTHING <= prior.sum():
            break
        weights = weights * ratios
    return bound


def _left(prior: Floats) -> float:
    """Return the prior of words that are not considered."""
    return max(0.0, 1 - float(prior.sum()))
