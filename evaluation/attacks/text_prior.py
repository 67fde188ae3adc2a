"""An attacker's prior on a text: how frequent words are, and which follow which.

Words of a document are a chain: word w is followed by w' with the chance

    P(w' | w) = (c(w, w') + t(w) pi(w')) / (c(w) + t(w)),

where c counts pairs of a public text, t(w) is the number of different words that follow w there,
and pi is how frequent words are (Witten and Bell 1991). The words of a released document are
guessed together: for each, the likeliest one given all that was released, by the forward and the
backward pass of a hidden Markov model (Rabiner 1989). No guess from the same prior and law is right
more often, word by word.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from .word_laws import Floats, Ids


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
