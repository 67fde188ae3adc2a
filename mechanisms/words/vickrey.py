"""Vickrey's choice of the two words nearest to a noisy vector, for metric differential privacy.

Xu, Aggarwal, Feyisetan and Teissier: On a utilitarian approach to privacy preserving text
generation (PrivateNLP 2021), section 3. A word's vector gets Madlib's noise. Of the two words
nearest to the noisy vector, at distances d1 <= d2, the first one is released with the chance

    (1 - t) d2 / (t d1 + (1 - t) d2),

and else the second one. At t = 0 that is Madlib, and at t = 1 always the second one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from ..keystream import Addresses, Keystream
from .madlib import Madlib
from .mechanism import Points, Randomness, Search

_CHOICE_LANE = 1  # beside Madlib's own

Floats = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Vickrey(Madlib):
    """Madlib's noise, and a choice between the two words nearest to the noisy vector.

    Guarantee:
        For every two words w, w' and every set S of words,
        Pr[M(w) in S] <= exp(epsilon * d(w, w')) Pr[M(w') in S], with d the Euclidean distance of
        their vectors, for every t. Proof: which words are nearest, and the chance of either, follow
        from the noisy vector, public data and bits that depend on neither; so the choice is
        post-processing of Madlib's noisy vector, and as private as that.
        It is Madlib's proof, for real numbers, with Madlib's limits: see `Madlib`. How the chance
        is rounded needs no bound, for any rule would do that knows no more than the noisy vector.
        A rule that leaves out the word itself where that is the nearest one (as a public library
        does) knows more: the word hardly ever comes back, other words become it, and the bound
        fails.
    """

    tuning: Fraction = field(
        metadata={
            "most": 1,
            "description": "how much the second nearest word is preferred, above 0 and at most 1, "
            "where it is always taken",
            "card": "how much the second nearest word is preferred, of 0 to 1",
        }
    )

    name = "vickrey"
    title = "Vickrey"
    does = "does so and takes one of the two words nearest to that"
    proofs = ("words/vickrey", "words/madlib")
    takes_nearest = False

    @property
    def notes(self) -> Sequence[str]:
        """See `WordMechanism`."""
        return [
            "Of the two words nearest to a noisy vector, at distances d1 and d2, the first was "
            "released with the chance (1 - t) d2 / (t d1 + (1 - t) d2), for t = "
            f"{float(self.tuning):.6g}, and else the second. The guarantee is the same for every t."
        ]

    def found(self, search: Search, noisy: Points, noise: Randomness) -> Ids:
        """See `NoisyWord`."""
        return chosen(*search.several(noisy, 2), self.tuning, noise.stream, noise.addresses)

    def imitated(self, search: Search, noisy: Points, uniforms: Floats) -> Ids:
        """See `NoisyWord`."""
        return choice(*search.several(noisy, 2), self.tuning, uniforms)


def chosen(
    words: Ids, squares: Floats, tuning: Fraction, stream: Keystream, addresses: Addresses
) -> Ids:
    """Draw which of its two nearest words becomes of each noisy vector, int32 (n,).

    Args:
        words: int32 (n, 2), the nearest word and the second one, or -1 where there is no second.
        squares: float64 (n, 2), their squared distances from the noisy vector.
        tuning: t, above 0 and at most 1.
        stream: the stage's keystream.
        addresses: one stream address a vector, shape (n, 2).
    """
    bits = stream.blocks(addresses, 1, lane=_CHOICE_LANE).view("<u8").reshape(-1, 2)[:, 0]
    return choice(words, squares, tuning, bits.astype(np.float64) * 2.0**-64)


def choice(words: Ids, squares: Floats, tuning: Fraction, uniforms: Floats) -> Ids:
    """Choose by uniforms, float64 (n,); see `chosen`."""
    first = uniforms < first_chance(squares, float(tuning))
    return np.where(first | (words[:, 1] < 0), words[:, 0], words[:, 1])


def first_chance(squares: Floats, tuning: float) -> Floats:
    """Return the chance of the first word, float64 (n,), from squared distances, (n, 2).

    Where both distances are 0 or infinite, they count as equal.
    """
    lengths = np.sqrt(squares)
    own, other = tuning * lengths[:, 0], (1 - tuning) * lengths[:, 1]
    total = own + other
    clear = (total > 0) & np.isfinite(total)
    chances = np.full(len(squares), 1 - tuning)
    np.divide(other, total, out=chances, where=clear)
    return chances
