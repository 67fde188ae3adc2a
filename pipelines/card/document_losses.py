"""The protection of whole documents of words, on the card: epsilons at one delta, by length."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from pydantic import Field

from quietcorpus.mechanisms.accounting.guarantees import round_up
from quietcorpus.mechanisms.words.document_loss import (
    Flips,
    Noise,
    Weights,
    WordLaw,
    word_epsilon,
)

from .parameters import Part

DELTA = Fraction(1, 10**6)
LENGTHS = (1, 20, 200, 1000)
MOST_DIMENSIONS = 65_536

_ABOVE, _BELOW = 0.02, 0.005  # grids of noise's losses differ between machines, and all round up
_ROUNDED = 1e-9  # the rest is arithmetic on distances that the card rounds
SAME = Fraction(1, 50)
"""The share by which an epsilon of a word may differ that another machine has found."""


class DocumentLoss(Part):
    """The protection of documents of one length, if any of their words are replaced."""

    words: int = Field(
        ge=1,
        description="that are released of a document: at most, or where its words share epsilon, "
        "exactly",
    )
    epsilon_at_mean: float = Field(
        description="if no word is replaced by one beyond the mean distance: an illustration; "
        "rounded up"
    )
    epsilon_at_maximum: float = Field(
        description="whatever the words are: none are farther apart than the maximum; rounded up"
    )
    worst: float = Field(
        description="the most that all words' losses add up to, at the maximum distance, for which "
        "delta is 0; rounded up"
    )


class DocumentLosses(Part):
    """(epsilon, delta) for two neighbours that differ in any words of one document.

    How many words it has, and which of them the vocabulary lacks, is equal in the two.
    """

    delta: float = Field(description="the nearest float; the epsilons have a margin for it")
    dimensions: int | None = Field(
        None, ge=1, le=MOST_DIMENSIONS, description="of the vectors, where they are used"
    )
    largest: float | None = Field(
        None,
        description="where words are drawn by their distances: the one beyond which no word's loss "
        "grows; rounded up",
    )
    documents: list[DocumentLoss]

    @property
    def law(self) -> WordLaw:
        """Return the law of one word's loss that they are of."""
        if self.largest is not None:
            return Weights(Fraction(self.largest))
        return Flips() if self.dimensions is None else Noise(self.dimensions)


@dataclass(frozen=True)
class DocumentBudget:
    """The protection that documents of at most `words` released words shall have."""

    epsilon: Fraction
    delta: Fraction
    words: int

    def word_epsilon(self, law: WordLaw, maximum: Fraction) -> Fraction:
        """Return the largest epsilon of a word, in 4 significant digits, that keeps to the budget.

        Raises ValueError for a number out of range.
        """
        if not (self.epsilon > 0 and maximum > 0):
            raise ValueError("epsilon of a document is above 0, and so is the largest distance")
        return word_epsilon(
            lambda epsilon: law.document_epsilon(epsilon, maximum, self.words, self.delta),
            self.epsilon,
            maximum * self.words,
        )


def document_losses(
    law: WordLaw,
    epsilons: dict[int, Fraction],
    mean: Fraction,
    maximum: Fraction,
    delta: Fraction = DELTA,
) -> DocumentLosses:
    """Compute the guarantees of documents, at one delta.

    Args:
        law: of one word's loss.
        epsilons: of every word, by the number of a document's words.
        mean: the mean distance of two words.
        maximum: a distance that no two words exceed.
        delta: the delta.
    """
    epsilon_of = law.document_epsilon
    counted = maximum if law.largest is None else law.largest
    return DocumentLosses(
        delta=float(delta),  # the bounds keep a margin larger than its rounding
        dimensions=law.dimensions,
        largest=None if law.largest is None else round_up(law.largest),
        documents=[
            DocumentLoss(
                words=words,
                epsilon_at_mean=round_up(epsilon_of(epsilon, mean, words, delta)),
                epsilon_at_maximum=round_up(epsilon_of(epsilon, maximum, words, delta)),
                worst=round_up(epsilon * min(maximum, counted) * words),
            )
            for words, epsilon in epsilons.items()
        ],
    )


def agree(stated: DocumentLosses, found: DocumentLosses) -> bool:
    """Return whether the two are of the same documents, and no epsilon is stated too low."""
    below = {"worst": _ROUNDED}
    if not isinstance(found.law, Noise):
        below |= {"epsilon_at_mean": _ROUNDED, "epsilon_at_maximum": _ROUNDED}
    return (
        (stated.delta, stated.law) == (found.delta, found.law)
        and [row.words for row in stated.documents] == [row.words for row in found.documents]
        and all(
            (1 - below.get(name, _BELOW)) * getattr(own, name) <= getattr(row, name)
            and getattr(row, name) <= (1 + _ABOVE) * getattr(own, name)
            for row, own in zip(stated.documents, found.documents, strict=True)
            for name in ("epsilon_at_mean", "epsilon_at_maximum", "worst")
        )
    )
