# ruff: noqa: RUF001 - letters of many scripts
"""Sentences: which of a document's count, and that nothing beside the document has a say in it."""

from __future__ import annotations

import pytest
import sentencex
from hypothesis import given
from hypothesis import strategies as st

from quietcorpus.indexes.tokens.segmentation import _SPACES, LANGUAGES, split

# Enough of what ends a sentence, or is space, that random texts have many sentences.
texts = st.text(
    st.one_of(
        st.sampled_from("aA.!?…。 \n\t\r\x1f\u00a0\u2028\u3000\"')(5,"),
        st.characters(codec="utf-8"),
    ),
    max_size=40,
)
SPACE = ["", " ", "\n \t\r\n", "\u3000\u2003", "\x1f\u00a0\u2028"]


def sentences(document: str, most: int = 1_000) -> list[str]:
    """The sentences of one document alone."""
    found = split([document], most, "en")
    assert found.offsets.tolist() == [0, len(found.texts)]
    return found.texts


def test_the_first_ones_count() -> None:
    """Kills: the last ones, one more or less, and a number that counts through the batch."""
    three = "One is here. Two is here. Three is here."
    assert sentences(three) == ["One is here.", "Two is here.", "Three is here."]
    for most in (1, 2, 3, 4):
        found = split([three, "Four is here.", three], most, "en")
        kept = sentences(three)[:most]
        assert found.texts == [*kept, "Four is here.", *kept]
        assert found.offsets.dtype == "int64"
        assert found.offsets.tolist() == [0, len(kept), len(kept) + 1, 2 * len(kept) + 1]


def test_space_around_a_sentence_is_none_of_it() -> None:
    """Kills: sentences with their line's end, whose embedding the place in a document changes."""
    assert sentences("  One is here. \n Two is here.\u00a0\n\n\tThree\u3000") == [
        "One is here.",
        "Two is here.",
        "Three",
    ]


def test_what_is_only_space_is_no_sentence_and_takes_no_place() -> None:
    """Kills: empty sentences, and cutting to the first `most` before they are left out."""
    text = " \n\n \nOne is here.\n\n  \n\nTwo is here.\n\n\n\nThree is here. \n\n"
    assert sentences(text) == ["One is here.", "Two is here.", "Three is here."]
    assert sentences(text, 2) == ["One is here.", "Two is here."]
    assert any(not part.strip() for part in sentencex.segment("en", text))  # the control


def test_abbreviations_end_no_sentence() -> None:
    """Kills: a rule that cuts at every full stop."""
    assert sentences("J. P. Morgan bought it. He paid in cash.") == [
        "J. P. Morgan bought it.",
        "He paid in cash.",
    ]
    assert sentences("It began on Jan. 5th in Rome. Nobody came.") == [
        "It began on Jan. 5th in Rome.",
        "Nobody came.",
    ]


def test_the_language_is_the_one_that_is_asked_for() -> None:
    """Kills: English for every language."""
    german = "Es war am 5. Mai in Rom. Ja."
    assert split([german], 9, "de").texts == ["Es war am 5. Mai in Rom.", "Ja."]
    assert len(split([german], 9, "en").texts) == 3  # the control


@pytest.mark.parametrize(
    ("language", "first", "second"),
    [
        ("zh", "我喜欢北京。", "今天天气很好！"),
        ("ja", "私は東京へ行きました。", "ラーメンが好きです。"),
        ("ar", "هل أنت بخير؟", "ذهبت إلى السوق."),
        ("fa", "او آمد؟", "من رفتم."),
        ("he", "הלכתי הביתה.", "הוא בא."),
        ("hi", "मैं घर गया।", "क्या हुआ?"),
        ("ur", "میں گھر گیا۔", "وہ آیا۔"),
        ("ko", "안녕하세요.", "저는 학생입니다."),
        ("my", "ကျွန်တော် ဈေးသွားတယ်။", "သူလာတယ်။"),
        ("am", "ሰላም ነው።", "እሺ።"),
        ("hy", "Ես գնացի։", "Նա եկավ։"),
    ],
)
def test_signs_of_other_scripts_end_sentences(language: str, first: str, second: str) -> None:
    """Kills: a language on the list whose signs the splitter does not know."""
    space = "" if language in ("zh", "ja") else " "
    assert split([first + space + second], 9, language).texts == [first, second]
    assert language in LANGUAGES


@given(text=texts, language=st.sampled_from(LANGUAGES))
def test_every_language_takes_any_text(text: str, language: str) -> None:
    """Kills: rules that fail next to some character, and whose message would quote the text."""
    kept = "".join("".join(split([text], 10**6, language).texts).split())
    assert kept == "".join(text.translate(_SPACES).split())


def test_empty_texts() -> None:
    """Kills: a document that is left out of the offsets, or is a sentence of nothing."""
    assert split([], 3, "en").offsets.tolist() == [0]
    for text in SPACE:
        assert sentences(text) == []
    found = split([*SPACE, "One is here.", *SPACE], 3, "en")
    assert found.texts == ["One is here."]
    assert found.offsets.tolist() == [0] * 6 + [1] * 6


@given(documents=st.lists(texts, max_size=6), most=st.integers(1, 4))
def test_a_documents_sentences_depend_on_it_alone(documents: list[str], most: int) -> None:
    """Kills: one text of all documents that is split and put apart again, and any state between."""
    found = split(iter(documents), most, "en")
    assert len(found.offsets) == len(documents) + 1
    assert found.offsets[-1] == len(found.texts)
    for number, document in enumerate(documents):
        own = found.texts[found.offsets[number] : found.offsets[number + 1]]
        assert own == sentences(document, most) == sentences(document)[:most]


@given(document=texts)
def test_sentences_are_what_the_text_has_between_spaces(document: str) -> None:
    """Kills: a sentence that is lost, repeated or changed by more than the space around it."""
    found = sentences(document)
    assert all(sentence and sentence == sentence.strip() for sentence in found)
    assert "".join("".join(found).split()) == "".join(document.split())


@pytest.mark.parametrize("space", ["\x85", "\xa0", "\u2009", "\u2028", "\u202f", "\u3000"])
@pytest.mark.parametrize("text", ["Vitamin C{}. Next", "the U.S{}.", "Henry V{}."])
def test_spaces_beside_which_the_splitter_would_panic(text: str, space: str) -> None:
    """Kills: a document that reaches the splitter as it is, which then fails and quotes it."""
    assert sentences(text.format(space)) == sentences(text.format(" "))
