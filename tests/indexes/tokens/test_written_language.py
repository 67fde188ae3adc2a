"""The language that texts are written in."""

from __future__ import annotations

import pytest
import wordfreq

from quietcorpus.indexes.tokens.languages import LANGUAGES
from quietcorpus.indexes.tokens.written_language import FUNCTION_WORDS, language_of, of_words
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
