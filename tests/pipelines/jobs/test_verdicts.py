"""The verdict on a release: its bounds are those of the measured tables."""

from __future__ import annotations

import json
import math
import re
from fractions import Fraction
from pathlib import Path

import pytest

from quietcorpus.mechanisms.bags.bag_of_words import Accounting, BagOfWords
from quietcorpus.mechanisms.noise.geometric import TwoSidedGeometric
from quietcorpus.mechanisms.votes.votes import Votes
from quietcorpus.pipelines.card.model import Meaning, Spread, Typical
from quietcorpus.pipelines.jobs import verdicts
from quietcorpus.pipelines.jobs.verdicts import Labels

TABLES = Path(__file__).parents[3] / "docs" / "measurements" / "tables"
KEPT = {Labels.SURVIVE: (0.65, 1.0), Labels.FADE: (0.32, 0.75), Labels.ARE_LOST: (0.0, 0.36)}
"""The shares of what originals teach, beyond a guess, that were measured."""
WORDS = 2_000  # of the measured bags


def measured(name: str, table: str) -> list[dict[str, str]]:
    found = json.loads((TABLES / f"{name}.json").read_text())[table]
    return [dict(zip(found["columns"], row, strict=True)) for row in found["rows"]]


def figure(cell: str) -> float:
    return float(cell.split(maxsplit=1)[0])


def bags(epsilon: str, bins: int, words: int = WORDS) -> BagOfWords:
    return BagOfWords(1, Fraction(epsilon), words, bins, Accounting.TIGHT)


def test_labels_in_bags_are_as_measured() -> None:
    # Kills: a bound that calls labels lost which a classifier learns, or the other way round.
    rows = measured("bags-of-words", "All maps in one table")
    clean, guess = (figure(rows[n]["macro-F1"]) for n in (0, 2))
    bins = {"none": WORDS} | {f"frequency, K = {n}": n for n in (100, 400, 800)}
    met = set()
    for row in rows:
        if row["map"] not in bins:
            continue
        own = bins[row["map"]]
        kept = (figure(row["macro-F1"]) - guess) / (clean - guess)
        deviation = TwoSidedGeometric(Fraction(row["epsilon / N"])).deviation
        labels = verdicts.of_noise_in_bins(deviation, own)
        assert KEPT[labels][0] <= round(kept, 2) <= KEPT[labels][1], row
        met.add(labels)
    assert met == set(Labels)


def test_labels_in_replaced_words_are_as_measured() -> None:
    rows = measured("words", "Text, word by word: what released text is good for")
    met = set()
    for row in rows:
        kept = (float(row["accuracy"]) - 0.5) / (0.837 - 0.5)
        labels = verdicts.of_unchanged(float(row["unchanged"]))
        assert KEPT[labels][0] <= round(kept, 2) <= KEPT[labels][1], row
        met.add(labels)
    assert met == set(Labels)


@pytest.mark.parametrize(("epsilon", "nearest", "macro"), [("1", 20, 0.802), ("0.5", 20, 0.736)])
def test_labels_by_votes_are_as_measured(epsilon: str, nearest: int, macro: float) -> None:
    # 25,000 reviews voted for a pool of 10,000 texts under two labels.
    votes = Votes(nearest, Fraction(epsilon), Fraction(1, 10**6))
    said = verdicts.of_votes(votes, (2, 10_000), "documents", smooth=False)
    survive = int(re.findall(r"about ([\d,]+) documents", said)[0].replace(",", ""))
    labels = Labels.SURVIVE if survive <= 25_000 else Labels.FADE
    assert survive / 4 <= 25_000
    kept = (macro - 0.5) / (0.857 - 0.5)
    assert KEPT[labels][0] <= kept <= KEPT[labels][1] + 0.15
    assert "with `nearest: 500` about " in said
    smoothed = verdicts.of_votes(votes, (2, 10_000), "documents", smooth=True)
    quarter = int(re.findall(r"about ([\d,]+) documents", smoothed)[0].replace(",", ""))
    assert quarter == pytest.approx(survive / 4, rel=0.1)


def test_more_votes_each_need_as_few_voters_as_is_said() -> None:
    # Kills: advice that is not what the advised spec itself would be told.
    few, many = (Votes(n, Fraction(1), Fraction(1, 10**6)) for n in (5, 500))
    first, second = (
        verdicts.of_votes(votes, (2, 8_000), "documents", smooth=False) for votes in (few, many)
    )
    told = int(re.findall(r"about ([\d,]+) would do", first)[0].replace(",", ""))
    own = int(re.findall(r"about ([\d,]+) documents", second)[0].replace(",", ""))
    assert told == pytest.approx(own, rel=0.15)
    assert "nearest: 500" not in second


@pytest.mark.parametrize(
    ("epsilon", "bins", "words", "documents", "labels"),
    [
        ("0.5", 1_000, 1_000, "mean nothing", Labels.ARE_LOST),
        ("1.5", 1_000, 1_000, "mean nothing", Labels.FADE),
        ("3", 1_000, 1_000, "are rough", Labels.SURVIVE),
        ("6", 1_000, 1_000, "can be read", Labels.SURVIVE),
        ("1", 100, 1_000, "are rough", Labels.FADE),
    ],
)
def test_single_documents_and_labels(
    epsilon: str, bins: int, words: int, documents: str, labels: Labels
) -> None:
    said = verdicts.of_bags(bags(epsilon, bins, words), size_known=True)
    assert f"single documents {documents}; " in said
    assert labels.value in said
    assert (f"of {bins:,} bins" in said) == (bins < words)
    # Kills: advice where nothing need be changed, and none where something should be.
    assert ("would keep" in said or "kind:" in said) == (labels is not Labels.SURVIVE)


@pytest.mark.parametrize("epsilon", ["0.1", "0.25", "0.5", "1", "2"])
def test_the_advised_bins_keep_what_is_said(epsilon: str) -> None:
    # Kills: bins that are advised and would not help.
    said = verdicts.of_bags(bags(epsilon, 5_000, 5_000), size_known=True)
    found = re.findall(r"size: (\d+)\}` over a public list would keep (.+)", said)
    deviation = TwoSidedGeometric(Fraction(epsilon)).deviation
    for size, kept in found:
        better = Labels.SURVIVE if kept == "two thirds or more" else Labels.FADE
        assert verdicts.of_noise_in_bins(deviation, int(size)) is better
    assert bool(found) != ("`kind: public-texts`" in said)
    assert bool(found) == (verdicts.of_noise_in_bins(deviation, 100) is not Labels.ARE_LOST)


def test_bins_may_be_too_few() -> None:
    # Kills: another kind in place of more bins, or of more words, where noise is small.
    few = verdicts.of_bags(bags("5", 100, 2_000), size_known=True)
    assert few.endswith("size: 800}` over a public list would keep two thirds or more")
    assert verdicts.of_bags(bags("5", 8, 8), size_known=True).endswith("vocabulary would keep more")


def test_a_group_s_mean_is_as_exact_as_is_said() -> None:
    said = verdicts.of_bags(bags("0.5", 1_000, 1_000), size_known=False)
    (group,) = re.findall(r"what ([\d,]+) documents", said)
    a = math.exp(-0.5)
    variance = sum(2 * k * k * a**k for k in range(1, 200)) * (1 - a) / (1 + a)
    error = math.sqrt(variance / int(group.replace(",", "")))
    assert 0.019 <= error <= 0.02
    assert "of 1,000 words in a row about 378 will be noise" in said


def test_counts_over_a_corpus() -> None:
    said = verdicts.of_histogram(10.2, "documents", 202)
    assert said.startswith("counts of words that 210 documents have are right to 5 in 100")
    assert "words of fewer than 202 do not come out" in said
    assert "do not come out" not in verdicts.of_histogram(10.2, "documents", None)
    assert "more users" not in verdicts.of_whole(10, 2_000, "users", None)
    few = verdicts.of_whole(10, 1_999, "users", None)
    assert "of about 1,999 users that is more than one in ten" in few


def test_words() -> None:
    def meaning(share: float) -> Meaning:
        spread = Spread(least=share, low=share, median=share, high=share, largest=share)
        one = Typical(epsilon=1, unchanged=spread, set_size=spread, set_size_limit=10)
        return Meaning.model_construct(typical=[one])

    assert "about 9.7 come back" in verdicts.of_words(meaning(0.97))
    assert "found by rare words" in verdicts.of_words(meaning(0.5))
    assert "cannot be read" in verdicts.of_words(meaning(0.3))
    assert "texts mean nothing" in verdicts.of_words(meaning(0.01))
    # Kills: another kind where this one serves.
    assert [("kind:" in verdicts.of_words(meaning(one))) for one in (0.5, 0.3)] == [False, True]


@pytest.mark.parametrize(
    ("epsilon", "directions", "labels"),
    [
        (3, 4, Labels.FADE),
        (10, 9, Labels.SURVIVE),
        (25, 24, Labels.SURVIVE),
        (1, 9, Labels.ARE_LOST),
    ],
)
def test_projected_means(epsilon: int, directions: int, labels: Labels) -> None:
    # The first three were measured: .745, .809 and .821 of .795 on reviews, .402, .548 and .603 of
    # .628 on complaints.
    said = verdicts.of_projected_mean(Fraction(epsilon), directions)
    assert labels.value in said
    assert ("calibrate" in said) == (labels is not Labels.SURVIVE)


def test_candidates_and_vectors() -> None:
    assert "fewer than 4 sentences" in verdicts.of_candidates(2, is_best=True)
    assert "utility: similarity" not in verdicts.of_candidates(2, is_best=True)
    assert verdicts.of_candidates(2, is_best=False).endswith("`utility: similarity` keeps more")
    assert "near words lie near" in verdicts.of_users(30.0, 30)
    assert "2 times as many users would do" in verdicts.of_users(29.9, 30)
