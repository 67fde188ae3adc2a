"""A guarantee as a person who wrote a document may read it: an example, in sentences.

It states only the definition; `odds` explains the consequences for others' beliefs.
Every number is rounded against the publisher.
"""

from __future__ import annotations

from fractions import Fraction

from quietcorpus.mechanisms.accounting.guarantees import (
    DocumentPrivacy,
    Guarantee,
    LimitedPrecision,
    MetricPrivacy,
    SentencePrivacy,
    UserPrivacy,
    ceiling,
)

from .model import Meaning
from .odds import factor

_YOURS = "Suppose that you wrote one of the documents"


def example(total: Guarantee, meaning: Meaning | None = None) -> str:
    """Tell a person what a guarantee means for something that they wrote.

    `meaning` describes the index, for metric privacy.
    """
    match total:
        case LimitedPrecision():
            return f"{_YOURS}, and that {_passage(total.precision)}, {_same(total)}"
        case SentencePrivacy():
            return (
                f"{_YOURS}, and that one of its sentences tells something of you. Had you written "
                f"another sentence in its place, {_same(total)}"
            )
        case DocumentPrivacy():
            return f"{_YOURS}. Had it not been there, {_same(total)}"
        case UserPrivacy():
            return (
                "Suppose that you wrote some of the documents, however many. Had none of them been "
                f"there, {_same(total)}"
            )
        case MetricPrivacy():
            return _of_word(total, meaning)


def _passage(precision: int) -> str:
    """Say which change of one's words is hidden; ends where the comparison begins."""
    if precision == 1:
        return "one of its words tells something of you. Had you left it out"
    replaced = precision // 2
    words = "one of its words tells" if replaced == 1 else f"{replaced:,} of its words tell"
    place = "another in its place" if replaced == 1 else "others in their place"
    return f"{words} something of you. Had you written {place}"


def _same(total: LimitedPrecision | SentencePrivacy | DocumentPrivacy | UserPrivacy) -> str:
    """Say how alike the two releases are."""
    delta: Fraction = getattr(total, "delta", Fraction(0))
    apart = f", but for a chance of {ceiling(delta)}" if delta else ""
    return (
        "whatever may be read in this release would have come out with a chance that is at most "
        f"{factor(total.epsilon)} times as large or as small{apart}."
    )


def _of_word(total: MetricPrivacy, meaning: Meaning | None) -> str:
    if total.per == "document":
        words, apart = "all of its words were others, as many", "they are on average"
    else:
        words = "one of its words, which tells something of you, were another"
        apart = "the two are"
    mean = ""
    if meaning:
        times = factor(meaning.loss_at_mean)
        mean = f"; at the mean distance of the index's words, that is {times} times"
    return (
        f"{_YOURS}. If {words} in place of what you wrote, whatever may be read in this release "
        f"would come out with a chance that is at most exp({ceiling(total.epsilon)} * d) times as "
        f"large or as small, where d is how far apart {apart}{mean}. Words that are far apart are "
        "protected less than words that are close."
    )
