"""The exponential mechanism over a whole vocabulary, for metric differential privacy of words.

McSherry and Talwar (FOCS 2007), with the distance of words as the utility: the law of SanText (Yue,
Du, Wang, Li, Sun and Chow: Differential privacy for text analytics via natural text sanitization,
Findings of ACL 2021, section 4).
"""

from __future__ import annotations

from dataclasses import dataclass

from .mechanism import TabledWord


@dataclass(frozen=True)
class WordExponential(TabledWord):
    """A draw of word x with probability proportional to exp(-epsilon d(w, x) / 2).

    Guarantee:
        For every two words w, w' and every set S of words,
        Pr[M(w) in S] <= exp(epsilon * d(w, w')) Pr[M(w') in S], with d the Euclidean distance of
        their vectors.
        Proof: by the triangle inequality a weight changes by a factor of exp(epsilon d(w, w') / 2)
        at most, and so does the sum of all weights, which it is divided by.
        The draw has exactly this law for ideal random bits, with d the distance of the vectors'
        own numbers: no weight and no distance is rounded. The bound is computational for the keyed
        stream.
    """

    name = "exponential"
    title = "The exponential mechanism"
    does = "draws a word by its distance"
    proofs = ("words/word_exponential", "words/distance_draws")
