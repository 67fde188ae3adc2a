"""The language that texts are written in."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import wordfreq
from hypothesis import example, given, settings
from hypothesis import strategies as st

from quietcorpus.indexes.tokens.languages import LANGUAGES
from quietcorpus.indexes.tokens.written_language import (
    FUNCTION_WORDS,
    MOST,
    FrequentCounts,
    FrequentWordCounter,
    FrequentWords,
    language_of,
    of_words,
)
from quietcorpus.pipelines.prepare.vocabulary import LISTED

FIRST = 400
"""The words of a language that are looked at: about half of its texts."""


def frequencies(language: str, words: float) -> dict[str, float]:
    """Return how often each frequent word is in so many words of a language, by wordfreq."""
    centibels = wordfreq.get_frequency_list(language, "small")  # words by -100 log10 of their share
    listed = [(word, 10 ** (-one / 100)) for one, words in enumerate(centibels) for word in words]
    shares = dict(listed[:FIRST])
    whole = sum(shares.values())
    return {word: words * share / whole for word, share in shares.items()}


@pytest.mark.parametrize("language", sorted(FUNCTION_WORDS.keys() & {*LISTED}))
def test_a_language_is_told_by_its_function_words(language: str) -> None:
    # Kills: a list with another language's words; a relative that is taken for it (Danish for
    # Norwegian, Indonesian for Malay); a floor that a language does not reach.
    assert of_words(frequencies(language, 1_000)) == language


def test_serbo_croatian_in_latin_letters_is_croatian() -> None:
    # wordfreq has all standards as one. Kills: Bosnian, Montenegrin or Serbian that is not told.
    assert of_words(frequencies("sh", 1_000)) == "hr"


def test_what_cannot_be_told() -> None:
    # Kills: a guess from a few words; one between two languages; one at names and numbers alone.
    english, german = frequencies("en", 99), frequencies("de", 99)
    assert of_words(english) is None
    assert of_words(english | german) is None
    assert of_words({f"name{number}": 5 for number in range(100)}) is None
    assert of_words({}) is None
    assert language_of([]) is None


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("ko", "안녕하세요 저는 학생입니다"),
        ("el", "Καλημέρα σας, τι κάνετε;"),
        ("he", "שלום לכם"),
        ("ka", "გამარჯობა"),
        ("th", "น้ำท่วมที่กรุงเทพฯ"),
        ("zh", "我喜欢在北京大学学习中文"),
        (None, "שלום, said the man who stood at the door"),
    ],
)
def test_a_script_tells_its_language(language: str | None, text: str) -> None:
    # Kills: a script of one language that is not known; one word of it that decides.
    assert language_of([text]) == language


def test_words_are_those_of_texts() -> None:
    # Kills: elided words that are not seen; capital letters; a text's end that is not cut.
    french = "L\u2019eau n'est PAS dans le verre, et il ne l'a pas bu. "
    assert language_of([french] * 10) == "fr"
    assert language_of(["zq " * 200 + french * 50]) is None


def test_the_lists() -> None:
    # Kills: a language that nothing else knows; words in another form than texts' words have;
    # languages of wordfreq that are offered no list, or offered one in vain.
    assert FUNCTION_WORDS.keys() <= LANGUAGES.keys()
    assert all(words == words.lower() for words in FUNCTION_WORDS.values())
    assert all(len(words.split()) == len(set(words.split())) for words in FUNCTION_WORDS.values())
    assert {*LISTED} == wordfreq.available_languages().keys() & LANGUAGES.keys()


# The language of texts, by their use of an artefact's most frequent words.


HALF = FrequentWords(("the", "of"), (0.3, 0.2))


def array(*texts: str) -> pa.Array:
    return pa.array(texts, pa.large_string())


def test_the_part_of_their_use_that_a_corpus_shares() -> None:
    # Kills: the share of all frequent words, which one foreign word can make large; a part of the
    # corpus's own use in place of the public texts'; words beyond those that are told.
    assert HALF.agreement(FrequentCounts(10, (3, 2))) == pytest.approx(1)
    assert HALF.agreement(FrequentCounts(10, (9, 0))) == pytest.approx(0.6)
    assert HALF.agreement(FrequentCounts(10, (1, 1, 8))) == pytest.approx(0.4)
    assert HALF.agreement(FrequentCounts(10, (3,))) == pytest.approx(0.6)


@pytest.mark.parametrize(("words", "of_the", "foreign"), [
    (1_000, 199, True),
    (1_000, 200, False),
    (999, 0, False),
])  # fmt: skip
def test_how_little_is_another_language(words: int, of_the: int, *, foreign: bool) -> None:
    # Kills: another threshold than .4, a judgement on less than 1,000 words.
    assert HALF.is_foreign(FrequentCounts(words, (of_the, 0))) is foreign


def test_counts_add_up() -> None:
    # Kills: counts of the shorter one alone, such as of a batch without a word.
    some = FrequentCounts(3, (1, 2))
    assert some + FrequentCounts() == FrequentCounts() + some == some
    assert some + FrequentCounts(4, (1, 0, 5)) == FrequentCounts(7, (2, 2, 5))


def test_terms_are_counted_by_number() -> None:
    # Kills: terms beyond the first hundred; their number in place of the words'.
    terms = np.array([0, 2, 2, MOST - 1, MOST, 5_000], np.int32)
    found = FrequentCounts.of_terms(9, terms)
    assert (found.words, len(found.of_each), sum(found.of_each)) == (9, MOST, 4)
    assert found.of_each[:3] == (1, 0, 2)


def test_frequent_words_of_texts() -> None:
    # Kills: an order that is not of frequency; shares of the frequent words alone; more words than
    # a hundred; words in capitals.
    rare = [f"z{chr(97 + n % 26)}{chr(97 + n // 26)}" for n in range(300)]
    found = FrequentWords.of(array("The of " * 400 + "the " * 100, " ".join(rare)))
    assert found is not None
    assert found.words[:2] == ("the", "of")
    assert found.shares[:2] == pytest.approx((500 / 1_200, 400 / 1_200))
    assert len(found.words) == MOST
    assert FrequentWords.of(array("the " * 999)) is None


@pytest.mark.parametrize(("text", "words"), [
    ("我喜欢在北京", "我 喜 欢 在 北 京"),
    ("東京でラーメン", "東 京 で ラ ー メ ン"),
    ("น้ำท่วม", "น า ท ว ม"),
    ("한국어를 배워요", "한국어를 배워요"),
    ("L'été 12 a@b.de", "l'été"),
])  # fmt: skip
def test_words_in_any_script(text: str, words: str) -> None:
    # Without a dictionary. Kills: clauses, which no other text has; words that the counter lacks.
    found = FrequentWords.of(array(*[text] * 1_000))
    assert found is not None
    assert set(found.words) == set(words.split())
    counted = FrequentWordCounter(found).count(array(text))
    assert counted.words == len(words.split())
    of_each = dict(zip(found.words, counted.of_each, strict=False))
    assert of_each == Counter(words.split())


@settings(deadline=None)
@example(["\u1100"])
@given(st.lists(st.text(max_size=40), max_size=20))
def test_any_text_has_frequent_words_that_are_counted(texts: list[str]) -> None:
    # Kills: words that no vocabulary takes. What is not of some texts' own is none of theirs.
    clean = [text.encode("utf-8", "ignore").decode() for text in texts]
    found = FrequentWords.of(array(*clean, "aa " * 1_000))
    assert found is not None
    counted = FrequentWordCounter(found).count(array(*clean, "aa " * 1_000))
    own = np.array(counted.of_each[: len(found.words)]) / counted.words
    assert own == pytest.approx(np.array(found.shares))


@pytest.mark.parametrize(
    "record", [None, [], {}, {"a": "b"}, {"a": 0.0}, {"a": 2.0}, {f"w{n}": 0.1 for n in range(101)}]
)
def test_what_is_no_record_tells_nothing(record: Any) -> None:
    assert FrequentWords.of_record(record) is None


def test_a_record_is_read_as_it_was_written() -> None:
    assert FrequentWords.of_record(HALF.record) == HALF


@pytest.mark.parametrize("frequent", [None, FrequentWords(("Two words",), (0.5,))])
def test_nothing_is_counted_of_no_words(frequent: FrequentWords | None) -> None:
    # Kills: a release that fails for a damaged manifest.
    assert FrequentWordCounter(frequent).count(array("two words")) == FrequentCounts()
