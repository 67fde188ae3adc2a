"""Kept columns: a copy of the text is refused, whatever it is called."""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from small_specs import WEAK

from quietcorpus.mechanisms.bags.bag_of_words import Accounting, BagOfWords
from quietcorpus.mechanisms.bags.histogram import ThresholdedVocabulary
from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.mechanisms.noise.euclidean_noise import EuclideanNoise
from quietcorpus.mechanisms.noise.geometric import TwoSidedGeometric
from quietcorpus.mechanisms.sentences.projected_mean import STEPS, ProjectedMean
from quietcorpus.mechanisms.votes.votes import Votes
from quietcorpus.pipelines.card.model import Meaning, Spread, Typical
from quietcorpus.pipelines.card.rows import looks_like
from quietcorpus.pipelines.jobs import notices
from quietcorpus.pipelines.jobs.notices import check
from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.reading.documents import Corpus
from quietcorpus.transforms.reading.sources import plan

TEXTS = [
    f"I wrote to the bank on day {n}.\nNobody answered, and «account» {n * 7919} is  still closed!"
    for n in range(40)
]
COPIES: dict[str, Callable[[str], Any]] = {
    "as it is": lambda text: text,
    "lower": str.lower,
    "upper": str.upper,
    "stripped of its punctuation": lambda text: "".join(c for c in text if c.isalnum() or c == " "),
    "with its spaces squeezed": lambda text: " ".join(text.split()),
    "within more": lambda text: f"<p>{text}</p> (see also the other letters)",
    "its beginning": lambda text: text[:40],
    "its end": lambda text: text[-40:],
    "its tokens": str.split,
    "in a list": lambda text: [{"a": [text]}],
    "in bytes": str.encode,
    "as JSON": lambda text: json.dumps({"raw": text}),
    "as a JSON string": json.dumps,
    "in tagged tokens": lambda text: [{"token": t, "tag": "NN"} for t in text.split()],
}


def corpus(folder: Path, values: Any, texts: Any = TEXTS, **options: Any) -> Corpus:
    pq.write_table(pa.table({"text": texts, "note": values}), folder / "corpus.parquet", **options)
    return Corpus(str(folder / "corpus.parquet"), keep=("note",))


def looked_at(asked: Corpus) -> list[str]:
    return check(asked, plan(asked), WEAK)


@pytest.mark.parametrize("copy", COPIES)
def test_a_copy_of_the_text_is_refused(tmp_path: Path, copy: str) -> None:
    # Kills: a comparison of the values as they are, of equal ones alone, or of strings alone.
    with pytest.raises(InputError) as raised:
        looked_at(corpus(tmp_path, [COPIES[copy](text) for text in TEXTS]))
    assert str(raised.value) == (
        "input.keep: 'note' repeats the text, or long parts of it, which no mechanism would "
        "protect; drop it from the list"
    )


@pytest.mark.parametrize("row_group_size", [1, 20, 1000])
def test_copies_in_a_few_rows_are_enough(tmp_path: Path, row_group_size: int) -> None:
    # Kills: a share of all rows, among which those without a value hide the others; a look at the
    # first row group alone.
    values = [text if n == 35 else None for n, text in enumerate(TEXTS)]
    if row_group_size == 1:
        values[:35] = TEXTS[:35]
    with pytest.raises(InputError, match="repeats the text"):
        looked_at(corpus(tmp_path, values, row_group_size=row_group_size))


@pytest.mark.parametrize("first", [True, False])
def test_the_sample_is_of_the_whole_corpus(tmp_path: Path, first: bool) -> None:
    # Kills: a look at the first or the last row groups alone, of more than it reads.
    values = [text if (n < 20) is first else None for n, text in enumerate(TEXTS)]
    with pytest.raises(InputError, match="repeats the text"):
        looked_at(corpus(tmp_path, values, row_group_size=1))


def test_short_texts_and_their_copies(tmp_path: Path) -> None:
    # Kills: a least length of what is copied whole.
    with pytest.raises(InputError, match="repeats the text"):
        looked_at(corpus(tmp_path, ["Yes.", "No!", "Hm"], ["yes", "no", "hm"]))


@pytest.mark.parametrize(
    "values",
    [
        ["bank", "account", "closed", "loan"] * 10,
        ["nobody answered"] * 40,
        [None] * 40,
        [""] * 40,
        list(range(40)),
        [f"case-{n}" for n in range(40)],
        [TEXTS[n - 1] for n in range(40)],
        # One in forty is none to speak of.
        [TEXTS[7] if n == 7 else "loan" for n in range(40)],
    ],
    ids=["labels", "short", "null", "empty", "numbers", "ids", "other texts", "one"],
)
def test_other_columns_are_kept(tmp_path: Path, values: list[Any]) -> None:
    # Kills: a refusal of columns whose short values happen to be in the text, or whose rows are
    # compared with others' texts.
    looked_at(corpus(tmp_path, values))


def test_texts_that_are_json(tmp_path: Path) -> None:
    # Kills: texts that are read in another way than values.
    texts = [json.dumps({"body": text, "day": n}) for n, text in enumerate(TEXTS)]
    with pytest.raises(InputError, match="repeats the text"):
        looked_at(corpus(tmp_path, texts, texts))
    with pytest.raises(InputError, match="repeats the text"):
        looked_at(corpus(tmp_path, TEXTS, texts))


def test_empty_texts_are_repeated_by_nothing(tmp_path: Path) -> None:
    looked_at(corpus(tmp_path, ["loan"] * 3, ["", " ", "!"]))
    looked_at(corpus(tmp_path, pa.nulls(2, pa.string()), pa.nulls(2, pa.string())))


def test_strings_of_other_bytes_are_no_accident(tmp_path: Path) -> None:
    # Kills: an error that quotes what it could not decode.
    raw = pa.array([b"fine", b"\xffcanary"], pa.binary())
    strings = pa.Array.from_buffers(pa.string(), 2, raw.buffers())
    looked_at(corpus(tmp_path, pa.ListArray.from_arrays([0, 1, 2], strings), ["a", "b"]))


def test_addresses_in_bytes_are_no_accident(tmp_path: Path) -> None:
    # Kills: points on a map, whose numbers hold "@" and ".", taken for addresses; an address among
    # bytes that nobody sees.
    texts = [f"a text of number {n}" for n in range(900)]
    latitude = b"\x01\x80.\x80\x02\x80F@"  # 45.0...
    points = [struct.pack("<BId", 1, 1, 2 + n / 90) + latitude for n in range(900)]
    assert looked_at(corpus(tmp_path, points, texts)) == []
    packed = [b"\x0a\x12user%d@host.example\x08\x01\xff" % n for n in range(900)]
    (doubt,) = looked_at(corpus(tmp_path, packed, texts))
    assert doubt.startswith("input.keep: 'note' looks like e-mail addresses, and will be released")


NAMES = [f"{first} {last}" for first in ("Anna", "José", "J.") for last in ("O'Neil", "Wu", "Öz")]
LOOKS: dict[str, tuple[list[str], list[str]]] = {
    "addresses": ([f"user{n}@host.example" for n in range(20)], ["e-mail addresses"]),
    "an address among others": (["see a.b@c.example", *["none"] * 19], ["e-mail addresses"]),
    "names": ([*NAMES, "Wu, Anna", "De La Cruz, Ana"], ["names of people"]),
    "authors": (
        [f"{name} <{n}@host.example>" for n, name in enumerate(NAMES * 2)],
        ["e-mail addresses"],
    ),
    "sentences": ([f"they called me {n} times a day" for n in range(20)], ["free text"]),
    "clauses": ([f"服务态度非常好{chr(0x4E00 + n)}" for n in range(20)], ["free text"]),
    "labels": (["Debt Collection", "Credit Card", "Student Loan"] * 40, []),
    "long labels": (["incorrect information on your credit report", "other"] * 40, []),
    "many labels": ([f"{chr(65 + n % 12)}bc Loan" for n in range(240)], []),
    "many long labels": ([f"a loan of the kind {chr(65 + n % 12)}" for n in range(240)], []),
    "numbers": ([str(n) for n in range(40)], []),
    "ids": ([f"case-{n:05}" for n in range(40)], []),
    "capitals": ([f"COMPANY {chr(65 + n)}" for n in range(20)], []),
    "dates": ([f"2026-11-{n:02}" for n in range(1, 30)], []),
    "handles": (["@somebody", "a @ b", "x@y"] * 10, []),
    "nothing": (["", " "], []),
}


@pytest.mark.parametrize("name", LOOKS)
def test_what_columns_look_like(name: str) -> None:
    # Kills: a rule that sees nothing, or everything.
    values, like = LOOKS[name]
    assert looks_like(values) == like


def test_a_doubt_names_the_column_and_no_value(tmp_path: Path) -> None:
    asked = corpus(tmp_path, [f"xylocanary{n}@host.example" for n in range(40)])
    assert looked_at(asked) == [
        "input.keep: 'note' looks like e-mail addresses, and will be released as it is; drop it, "
        "unless everyone may read it"
    ]


@pytest.mark.parametrize("like", ["addresses", "sentences"])
def test_a_column_of_one_refused_look_is_refused(tmp_path: Path, like: str) -> None:
    # Kills: a column of e-mail addresses or of free text that is released after a warning.
    values, (look,) = LOOKS[like]
    asked = corpus(tmp_path, [values[n % 20] for n in range(40)])
    with pytest.raises(InputError, match=rf"^input\.keep: 'note' looks like {look}, and would be"):
        check(asked, plan(asked), [])


# The noise that a dry run foretells, each number computed in another way.


RATES = (Fraction(1, 20), Fraction(1, 2), Fraction(3))


def numbers(text: str) -> list[float]:
    """The numbers in a sentence."""
    return [float(one.replace(",", "")) for one in re.findall(r"\d[\d,]*(?:\.\d+)?", text)]


def law(rate: Fraction) -> tuple[np.ndarray, np.ndarray]:
    """Values of two-sided geometric noise, and their chances, as differences of two geometrics."""
    decay = math.exp(-float(rate))
    one = (1 - decay) * decay ** np.arange(1500)
    chances = np.convolve(one, one[::-1])
    return np.arange(-1499, 1500), chances


@pytest.mark.parametrize("rate", RATES)
def test_the_law_of_a_count(rate: Fraction) -> None:
    # Kills: the mean of one of the two geometrics, or their deviation; Pr[Z >= 0].
    values, chances = law(rate)
    found = TwoSidedGeometric(rate)
    assert found.mean_size == pytest.approx((np.abs(values) * chances).sum(), rel=1e-6)
    assert found.above_zero == pytest.approx(chances[values > 0].sum(), rel=1e-6)


def test_a_law_with_hardly_any_noise() -> None:
    # Kills: a number that no float holds.
    found = TwoSidedGeometric(Fraction(10**6))
    assert found.mean_size == 0
    assert found.above_zero == pytest.approx(0)


@pytest.mark.parametrize("rate", RATES)
def test_bags_of_words(rate: Fraction) -> None:
    # Kills: the rate of the paper's accounting, words that are counted by bins, and the reverse.
    values, chances = law(rate)
    size, above = (np.abs(values) * chances).sum(), chances[values > 0].sum()
    precision, words, bins = 10, 5000, 40
    whole = BagOfWords(precision, rate * precision, words, words, Accounting.TIGHT)
    off, kept, added = notices.of_bags(whole, size_known=True)
    assert numbers(off)[0] == pytest.approx(size, rel=0.06)
    assert numbers(kept) == pytest.approx([chances[values >= 0].sum(), above], rel=0.06)
    assert numbers(added) == pytest.approx([words * above, words], rel=0.06)
    *_, unknown = notices.of_bags(whole, size_known=False)
    assert numbers(unknown) == pytest.approx([1000 * above, 1000], rel=0.06)
    # A bin without words is released with what of the noise is above zero.
    mapped = BagOfWords(precision, rate * precision, words, bins, Accounting.TIGHT)
    binned, empty = notices.of_bags(mapped, size_known=True)
    assert numbers(binned) == pytest.approx([bins, size], rel=0.06)
    positive = (np.maximum(values, 0) * chances).sum()
    assert numbers(empty) == pytest.approx([bins * positive], rel=0.06)
    paper = BagOfWords(precision, rate * precision, words, bins, Accounting.PER_ENTRY)
    assert notices.of_bags(paper, size_known=True) != [binned, empty]


def test_a_histogram_and_a_private_vocabulary() -> None:
    # Kills: a threshold of another N, of delta for all N words together.
    assert numbers(notices.of_histogram(Fraction(1, 20)))[0] == pytest.approx(20, rel=0.01)
    precision, epsilon, delta = 4, Fraction(2), Fraction(1, 1000)
    found = ThresholdedVocabulary(precision, epsilon, delta)
    values, chances = law(epsilon / precision)
    least = next(t for t in range(2, 200) if precision * chances[values >= t - 1].sum() <= delta)
    assert numbers(notices.of_threshold(found.threshold)) == [least]


def test_words() -> None:
    # Kills: a mean in place of the median, sizes that draws could not show.
    def of(unchanged: float, size: float, length: int | None) -> Typical:
        spreads = (Spread(least=0, low=0, median=m, high=9, largest=9) for m in (unchanged, size))
        first, second = spreads
        return Typical(
            document_words=length, epsilon=1, unchanged=first, set_size=second, set_size_limit=200
        )

    found = Meaning(
        mean_distance=1,
        maximum_distance=2,
        loss_at_mean=1,
        loss_at_maximum=2,
        typical=[of(0.125, 37, None), of(0.5, 200, 1000)],
        sample="",
    )
    one, other = notices.of_words(found)
    assert numbers(one) == [0.12, 95, 37]
    assert "at least" not in one
    assert numbers(other) == [1000, 0.5, 95, 200]
    assert "at least 200 words" in other


def test_votes() -> None:
    # Kills: votes that count for one whatever `nearest`, a threshold of one deviation.
    votes = Votes(4, Fraction(2), Fraction(1, 10**6))
    deviation = float(votes.noise.noise_multiplier)  # in units of one document's norm
    needed, chance = notices.of_votes(votes, 100_000, "documents")
    (alone, _) = notices.of_votes(votes, 100_000, "documents", smooth=True)
    assert alone == f"{needed}, by its own votes alone"
    # A document gives each of its four texts half of its norm.
    assert numbers(needed)[0] == pytest.approx(3 * deviation / 0.5, abs=1)
    drawn = np.random.default_rng(1).normal(0, deviation, 10**6)
    by_chance = (drawn >= 3 * deviation).mean() * 100_000
    assert numbers(chance)[1] == pytest.approx(by_chance, rel=0.15)


def test_users() -> None:
    # Kills: users that are rounded up.
    assert numbers(notices.of_users(1234.9, 5000)) == [1234, 5000]


@pytest.mark.parametrize(("epsilon", "most"), [(3, Fraction(1)), (10, Fraction(1, 2))])
def test_candidates(epsilon: int, most: Fraction) -> None:
    # Kills: the whole of epsilon in place of half of it, one sentence too few or too many.
    candidates = 500

    def odds(sentences: int) -> float:
        return math.exp(epsilon * float(most) * sentences / 2) / (candidates - 1)

    needed = notices.sentences_needed(Fraction(epsilon), candidates, most)
    assert numbers(notices.of_candidates(needed, candidates)) == [needed, candidates]
    assert odds(needed) >= 1 > odds(needed - 1)


def test_projected_means() -> None:
    # Against draws. Kills: a length per direction, a mean that is not divided by the sentences.
    said = numbers(notices.of_projected_mean(Fraction(10), 12))
    mechanism = ProjectedMean(Fraction(10), 12)
    stream = ReleaseKey.fresh().stage("test", 1)
    addresses = stream.addresses("s", range(400), [b"x"] * 400)
    lengths = np.linalg.norm(EuclideanNoise(mechanism.rate, 12).sample(stream, addresses), axis=1)
    assert said[0] == 10
    assert said[1] == pytest.approx(lengths.mean() / STEPS / 10, rel=0.15)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (["a", "b"] * 200, None),
        (["a", "a", None, "a"] * 100, "about 25 in 100"),
        (["a", "", None, "b"] * 100, "about 50 in 100"),
        ([None, *["a"] * 399], "fewer than 1 in 100"),
        ([7.0, None], "about 50 in 100"),
    ],
)
def test_documents_without_a_user_are_noticed(
    values: list[Any], said: str | None, tmp_path: Path
) -> None:
    # Kills: empty names that count as one user, a share of other documents, values in the message.
    table = pa.table({"text": ["x"] * len(values), "by": values})
    pq.write_table(table, tmp_path / "c.parquet", row_group_size=40)
    given = Corpus(str(tmp_path / "c.parquet"), also=(("mechanism.user", "by"),))
    found = notices.without_user(given, plan(given))
    if said is None:
        assert found is None
    else:
        assert found is not None
        assert found.startswith(
            f"mechanism.user: the column 'by' is empty for {said} of the first "
        )
    # A column of another key is not one of users.
    other = replace(given, also=(("mechanism.budgets.column", "by"),))
    assert notices.without_user(other, plan(other)) is None
