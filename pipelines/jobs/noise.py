"""The noise that a release will have, in sentences for a person who is about to run it.

Every number follows from public figures: the spec, an artefact, the number of users that a spec
states. None depends on the corpus.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from quietcorpus.mechanisms.bags.bag_of_words import BagOfWords
from quietcorpus.mechanisms.noise.geometric import TwoSidedGeometric

from ..card.model import Meaning, Typical

if TYPE_CHECKING:  # its module needs the extra `embeddings`
    from quietcorpus.mechanisms.votes.ballots import Ballots

_SENTENCES = 10  # of a document, where its size is not known before the run
_MANY = 1_000  # words of a vocabulary whose size is not known before the run


def of_histogram(rate: Fraction) -> str:
    """Say how far off a noisy count of the corpus is."""
    size = TwoSidedGeometric(rate).mean_size
    return f"the corpus's count of a word is off by about {_number(size)} on average"


def of_threshold(threshold: int) -> str:
    """Say how many documents a word of a private vocabulary needs."""
    return f"a word must be in about {threshold:,} documents to be in the vocabulary"


def of_bags(mechanism: BagOfWords, *, size_known: bool) -> list[str]:
    """Say how far off a document's noisy counts are, and which words noise alone puts there.

    A mechanism of as many bins as words has no compression map; the number of both is then a
    stand-in, unless `size_known`.
    """
    law = TwoSidedGeometric(mechanism.rate)
    off = f"off by about {_number(law.mean_size)} on average"
    if not size_known and mechanism.bins == mechanism.vocabulary_size:
        added = f"about {_number(_MANY * law.above_zero)} of every {_MANY:,} words"
    elif mechanism.bins == mechanism.vocabulary_size:
        added = (
            f"about {_number(mechanism.bins * law.above_zero)} of the vocabulary's "
            f"{mechanism.bins:,} words"
        )
    else:
        words = mechanism.bins * law.mean_size / 2
        return [
            f"a document's count in each of {mechanism.bins:,} bins of words is {off}",
            f"a document without a word of the vocabulary is released with about {_number(words)}, "
            "all of them noise",
        ]
    return [
        f"a document's count of a word is {off}, and most words of a document occur once or twice",
        f"a word that a document has once is released with it with a chance of "
        f"{1 - law.above_zero:.2f}, and one that it lacks with a chance of {law.above_zero:.2g}",
        f"noise alone puts {added} into every document",
    ]


def of_words(meaning: Meaning) -> list[str]:
    """Say what becomes of the typical word of an index, by the estimates of the card."""
    return [_of_typical(one) for one in meaning.typical]


def _of_typical(one: Typical) -> str:
    length = one.document_words
    where = "" if length is None else f" of a document of {length:,} {_plural('word', length)}"
    size = round(one.set_size.median)
    most = "at least " if size >= one.set_size_limit else ""
    return (
        f"the typical word of the index{where} comes back unchanged with a chance of "
        f"{one.unchanged.median:.2g}; 95 % of the chance is on {most}{size:,} "
        f"{_plural('word', size)}"
    )


def of_votes(votes: Ballots, sums: int, voters: str, smooth: bool = False) -> list[str]:
    """Say how many votes a text needs, and how many of `sums` stand out without any.

    With `smooth`, that is said of the noisy sums, which estimates are made of.
    """
    alone = ", by its own votes alone" if smooth else ""
    return [
        f"about {math.ceil(votes.least / votes.weight):,} {voters} must vote for a text "
        f"before it stands out of the noise{alone}",
        f"of {sums:,} sums of votes, about {_number(sums * votes.by_chance)} stand out by chance "
        "alone",
    ]


def of_users(on_noise: float, least: int) -> str:
    """Say how many users there are to a standard deviation of the noise, and are needed."""
    return (
        f"there are about {math.floor(on_noise):,} users to a standard deviation of the noise, and "
        f"vectors need {least:,}"
    )


def of_candidates(epsilon: Fraction, candidates: int, most_of_one: Fraction) -> str:
    """Say how many sentences a document needs for one candidate to outweigh all others.

    One sentence adds at most `most_of_one` to a candidate's utility, so that k of them make it
    likelier than another by a factor of at most exp(epsilon * most_of_one * k / 2).
    """
    needed = math.ceil(2 * math.log(max(candidates - 1, 1)) / float(epsilon * most_of_one))
    return (
        f"a document needs {max(needed, 1):,} {_plural('sentence', max(needed, 1))} or more before "
        f"one of {candidates:,} candidates can be likelier than all others together"
    )


def of_projected_mean(epsilon: Fraction, directions: int) -> str:
    """Say how far the mean of a typical document is off, beside how far sentences lie apart.

    The noise on the sum has length directions / rate on average, in steps of radius / STEPS.
    """
    off = 2 * directions / (float(epsilon) * _SENTENCES)
    return (
        f"the mean of a document of {_SENTENCES} sentences is off by about {_number(off)} times "
        "the length, along the directions, that half of public sentences exceed and are cut to"
    )


def _number(value: float) -> str:
    """Write a number in two significant digits, or as a whole number if that has more."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}"


def _plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"
