"""TEM, the truncated exponential mechanism on words, for metric differential privacy.

Carvalho, Vasiloudis, Feyisetan and Wang: TEM, high utility metric differential privacy on text
(2021; SDM 2023), algorithm 1. Words within a distance gamma of the private word w have the score
-d(w, x). All k others are one element, of score -gamma + 2 ln(k) / epsilon. Gumbel noise of scale
2 / epsilon is added, the largest sum wins, and if it is that element, one of the others is drawn
uniformly. The largest of scores with such noise is a draw by weights exp(epsilon score / 2): that
element's is k exp(-epsilon gamma / 2), so that every word beyond gamma has exp(-epsilon gamma / 2).
TEM is thus the exponential mechanism with the distance min(d, gamma), and is drawn as such.

With ln(V / (V - k)) in place of ln(k), as a public library has it, k words together have a weight
that no distance of theirs gives, and the bound below fails.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from .distance_draws import log_above
from .mechanism import TabledWord

BETA = Fraction(1, 1000)
"""The chance, at most, of a word beyond the radius that `radius_of` gives; the paper's default."""


@dataclass(frozen=True)
class TruncatedExponential(TabledWord):
    """A draw of word x with probability proportional to exp(-epsilon min(d(w, x), gamma) / 2).

    Guarantee:
        For every two words w, w' and every set S of words,
        Pr[M(w) in S] <= exp(epsilon * min(d(w, w'), gamma)) Pr[M(w') in S], with d the Euclidean
        distance of their vectors; so the loss is at most epsilon * d(w, w'), and no word's exceeds
        epsilon * gamma.
        Proof: let t = min(d, gamma). For every x, |t(w, x) - t(w', x)| <= min(d(w, w'), gamma):
        by d's triangle inequality, since y -> min(y, gamma) shortens differences, and since both
        lie in [0, gamma]. So a weight exp(-epsilon t / 2) changes by a factor of
        exp(epsilon min(d(w, w'), gamma) / 2) at most, and so does the sum of all weights, which it
        is divided by: two such factors. Nothing fails beyond gamma: words there have a weight
        like all others.
        The draw has exactly this law for ideal random bits, with d the distance of the vectors'
        own numbers: no weight and no distance is rounded. The bound is computational for the keyed
        stream.
    """

    truncation: Fraction | None = field(
        default=None,
        metadata={
            "description": "the distance beyond which all words are equally likely; unless given, "
            "the one beyond which a word is drawn once in a thousand times at most"
        },
    )

    name = "tem"
    title = "TEM"
    does = "draws a word by its distance, up to a distance"
    proofs = ("words/tem", "words/distance_draws")

    def gamma(self, epsilon: Fraction | None, words: int) -> Fraction | None:
        """See `WordMechanism`: what was given, or else what follows from epsilon."""
        if self.truncation is not None or epsilon is None:
            return self.truncation
        return radius_of(epsilon, words)


def radius_of(epsilon: Fraction, words: int) -> Fraction:
    """Return the gamma beyond which a word is drawn with a chance of `BETA` at most.

    With V words, at most V - 1 lie beyond gamma, of weight exp(-epsilon gamma / 2) each, and the
    word itself has weight 1. So their chance is at most BETA if (V - 1) exp(-epsilon gamma / 2) is
    at most BETA / (1 - BETA): gamma = (2 / epsilon) ln((1 - BETA) (V - 1) / BETA), as in the paper,
    with the logarithm rounded up to 6 digits. It depends on epsilon and V alone, and is the same on
    every machine.
    """
    odds = (1 - BETA) / BETA * max(1, words - 1)
    return 2 * log_above(odds) / epsilon
