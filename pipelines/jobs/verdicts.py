"""A sentence on what a release will be good for, before its budget is spent.

A verdict says what becomes of single documents, of what many documents share, and of labels that a
classifier learns, and which change would keep more. Every number follows from public figures. The
bounds are of measurements on reviews and complaints (docs/measurements): a rule of thumb, which
`evaluate` replaces by figures of one's own texts.
"""

from __future__ import annotations

import math
from enum import Enum
from fractions import Fraction
from typing import TYPE_CHECKING

from quietcorpus.mechanisms.bags.bag_of_words import BagOfWords
from quietcorpus.mechanisms.noise.geometric import TwoSidedGeometric

from ..card.model import Meaning
from .notices import MANY, mean_off, number

if TYPE_CHECKING:
    from quietcorpus.mechanisms.votes.ballots import Ballots

_OWN_WORDS = 100  # distinct words of a document
_LENGTH = 15.0  # of a document's counts, as a vector
_WITHIN = 0.02  # the standard error at which the mean of a count shows
_TIMES = 20  # an error, for a count that is right to 5 in 100
_BINS = (800, 400, 100)
_FEW_BINS = 400  # fewer lose a third of the labels before any noise
_NEAREST = 500
_EACH, _SMOOTHED = 3, 12  # the share of all voters by whom each text stands out alone


class Labels(Enum):
    """The share of what originals teach a classifier that a release keeps, beyond a guess."""

    SURVIVE = "labels survive: a classifier learns two thirds or more of what originals teach"
    FADE = "labels fade: a classifier learns a third to two thirds of what originals teach"
    ARE_LOST = "labels are lost: a classifier learns a third or less of what originals teach"


def of_noise_in_bins(deviation: float, bins: int) -> Labels:
    """Return what becomes of labels where each of a document's bins has noise."""
    off = deviation * math.sqrt(bins) / _LENGTH
    if off <= 0.9 and bins >= _FEW_BINS:
        return Labels.SURVIVE
    return Labels.FADE if off <= 2.5 else Labels.ARE_LOST


def of_unchanged(share: float) -> Labels:
    """Return what becomes of labels where this share of words comes back unchanged."""
    return Labels.SURVIVE if share >= 0.4 else Labels.FADE if share >= 0.05 else Labels.ARE_LOST


def of_bags(mechanism: BagOfWords, *, size_known: bool) -> str:
    """Say what bags of words are good for; arguments are those of `notices.of_bags`."""
    law = TwoSidedGeometric(mechanism.rate)
    compressed = mechanism.bins < mechanism.vocabulary_size
    bins = mechanism.bins if compressed or size_known else MANY
    labels = of_noise_in_bins(law.deviation, bins)
    group = max(10, _rounded((law.deviation / _WITHIN) ** 2))
    said = [
        _of_rows(bins, law.above_zero, "bins" if compressed else "words"),
        f"what {group:,} documents have in common shows, a mean count to within {_WITHIN:g}",
        labels.value,
    ]
    if labels is not Labels.SURVIVE:
        words = mechanism.vocabulary_size if size_known else MANY
        said.append(_other_bins(law.deviation, words, labels))
    return "; ".join(said)


def _of_rows(bins: int, above_zero: float, of: str) -> str:
    noise = bins * above_zero
    if noise > _OWN_WORDS * (1 - above_zero):
        meaning = "single documents mean nothing"
    elif noise > _OWN_WORDS / 10:
        meaning = "single documents are rough"
    else:
        meaning = "single documents can be read"
    return f"of {bins:,} {of} in a row about {number(noise)} will be noise: {meaning}"


def _other_bins(deviation: float, words: int, labels: Labels) -> str:
    """Say which bins of `words` words would keep more of the labels, or what else would."""
    kept = {Labels.SURVIVE: "two thirds or more", Labels.FADE: "a third to two thirds"}
    if labels is Labels.FADE:
        del kept[Labels.FADE]
    for wanted, share in kept.items():
        for size in _BINS:
            if size < words and of_noise_in_bins(deviation, size) is wanted:
                return (
                    f"`compression: {{method: frequency, size: {size}}}` over a public list would "
                    f"keep {share}"
                )
    if of_noise_in_bins(deviation, _FEW_BINS) is Labels.SURVIVE:
        return "a longer vocabulary would keep more"
    return (
        "`kind: public-texts` keeps labels, and `kind: histogram` counts the corpus, with far less "
        "noise"
    )


def of_histogram(mean_size: float, units: str, threshold: int | None) -> str:
    """Say which counts over a corpus are right; `threshold` is that of a private vocabulary."""
    right = _rounded(_TIMES * mean_size)
    least = "" if threshold is None else f", and words of fewer than {threshold:,} do not come out"
    return (
        f"counts of words that {right:,} {units} have are right to 5 in 100, and of rarer words "
        f"less so{least}; single {units} do not show, and no label can be learnt"
    )


def of_whole(mean_size: float, count: int, units: str, threshold: int | None) -> str:
    """Say which counts over about `count` whole `units`, users or documents, are right."""
    said = of_histogram(mean_size, units, threshold)
    if _TIMES * mean_size <= count / 10:
        return said
    return (
        f"{said}; of about {count:,} {units} that is more than one in ten: more {units}, or fewer "
        "`contributions.items`, would tell more"
    )


def of_groups(of_size: float, of_word: float) -> str:
    """Say which groups show, and which words tell them, by the noise's standard deviations."""
    return (
        f"of groups of {_rounded(10 * of_size):,} documents or more the size is right to a fifth, "
        f"and a word tells a group if about {_rounded(6 * of_word):,} more of its documents have "
        "it than as many others; single users do not show"
    )


def of_words(meaning: Meaning) -> str:
    """Say what replaced words are good for, by the typical word of an index."""
    share = meaning.typical[0].unchanged.median
    labels = of_unchanged(share)
    reads = {
        Labels.SURVIVE: "texts keep much of their meaning, and people can be found by rare words",
        Labels.FADE: "sentences cannot be read",
        Labels.ARE_LOST: "texts mean nothing",
    }[labels]
    said = f"of 10 words about {10 * share:.2g} come back unchanged: {reads}; {labels.value}"
    if labels is Labels.SURVIVE:
        return said
    return f"{said}; `kind: public-texts` keeps labels, and protects whole documents"


def of_candidates(needed: int, *, is_best: bool) -> str:
    """Say what drawn candidates are good for, if a document needs `needed` sentences."""
    other = "" if is_best else "; `utility: similarity` keeps more"
    return (
        f"documents of fewer than {2 * needed} sentences come out as next to random candidates; "
        f"of longer ones {Labels.FADE.value}; `mechanism: projected-mean` keeps more, wherever "
        f"both were measured{other}"
    )


def of_projected_mean(epsilon: Fraction, directions: int) -> str:
    """Say what noisy means of a document's sentences are good for."""
    off = mean_off(epsilon, directions)
    if off > 0.5:
        labels = Labels.ARE_LOST
    else:
        labels = Labels.FADE if off > 0.2 or directions < 6 else Labels.SURVIVE
    said = f"of documents of 10 sentences {labels.value}"
    if labels is Labels.SURVIVE:
        return said
    return (
        f"{said}; longer documents keep more, and so may other `directions`, which `quietcorpus "
        "calibrate sentence-embeddings` finds"
    )


def of_truncation() -> str:
    """Say what sums with noise in all dimensions are good for."""
    return f"{Labels.ARE_LOST.value}; `mechanism: projected-mean` keeps most of what it could"


def of_votes(votes: Ballots, shape: tuple[int, int], voters: str, *, smooth: bool) -> str:
    """Say how many voters teach a classifier by the votes for a pool of texts.

    `shape` has the numbers of strata and of the pool's texts.
    """
    # The module imports optional packages.
    from quietcorpus.mechanisms.votes.pool_size import least_voters

    strata, texts = shape
    enough = least_voters(votes, texts, strata) / (_SMOOTHED if smooth else _EACH)
    said = (
        f"from about {_rounded(enough):,} {voters} on labels survive, from a quarter of that on "
        "they fade, and with fewer chance chooses the texts"
    )
    if votes.nearest >= _NEAREST or texts < 2 * _NEAREST:
        return said
    fewer = enough * math.sqrt(votes.nearest / _NEAREST)
    return f"{said}; with `nearest: {_NEAREST}` about {_rounded(fewer):,} would do"


def of_users(on_noise: float, least: int) -> str:
    """Say what vectors of words are good for, by the users to a standard deviation of noise."""
    if on_noise >= least:
        return "near words lie near each other: vectors serve as features, and single users vanish"
    return (
        "vectors are mostly noise: near words do not lie near each other; "
        f"{math.ceil(least / max(on_noise, 1e-9)):,} times as many users would do"
    )


def _rounded(value: float) -> int:
    """Round up to two significant digits."""
    unit: int = 10 ** max(0, math.floor(math.log10(max(value, 1))) - 1)
    return math.ceil(value / unit) * unit
