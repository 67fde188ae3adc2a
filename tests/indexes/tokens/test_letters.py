# ruff: noqa: RUF001 - letters of many scripts
"""Letters that mean one word: the table of the guide, and the normal form behind it."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from machine import ROOT

from quietcorpus.indexes.tokens.letters import SPELLED, normalize
from quietcorpus.indexes.tokens.tokenizers import FIRST_WORDS, UNICODE_WORDS, Tokenizer
from quietcorpus.indexes.tokens.vocabulary import Vocabulary
from tests.indexes.tokens.test_tokenizers import tokens_of

pytest.importorskip("icu4py")

GUIDE = (ROOT / "docs" / "guides" / "languages.md").read_text("utf-8")
ROWS = re.findall(r"^\| (all|`..`(?:, `..`)*) \| .* \| `(.+)` \| (\S+) \|$", GUIDE, re.M)
PIECES = [
    *("l", "L", "·", "•", "ŀ", "Ŀ", "σ", "ς", "Σ", "ϲ", "α", "Α", "ß", "i", "I", "İ", "g'", "o`"),
    *(
        "'",
        "’",
        "ʼ",
        "ʻ",
        "‘",
        "´",
        "′",
        "″",
        "ŉ",
        "՚",
        "׳",
        '"',
        "״",
        "”",
        "צ",
        "ה",
        "ל",
        "ש\u05c1",
    ),
    *("\u00ad", "\u200b", "\u200c", "\u200d", "\u200e", "\u2060", "\ufeff", "\ufe0f", "\u3164"),
    *("ㅋ", "ㅏ", "ㄴ", "가", "ᄒ", "ᅡ", "ᆫ", "ﾡ", "ￂ", "㈀", "㉠", "は", "゛", "ﾊﾞ", "ガ", "中", "ก"),
    *(
        "น\u0e49ำ",
        "ນ\u0ecdາ",
        "ك",
        "ک",
        "ي",
        "ی",
        "ى",
        "ه",
        "ہ",
        "ۀ",
        "ه\u0654",
        "ـ",
        "\u064e",
        "\ufc60",
    ),
    *(
        "ﻚ",
        "\ufe70",
        "ﷲ",
        "ա",
        "՞",
        "ք",
        "\u0d28\u0d4d\u200d",
        "\u09a4\u09cd\u200d",
        "òa",
        "uý",
        "ðş",
    ),
    *("1", "_", " ", "\n", "@", "://", "www.", "a", "e\u0301", "\u0301", "\U0001d6d3", "❤"),
]
texts = st.lists(
    st.one_of(
        st.sampled_from(PIECES), st.text(st.characters(exclude_categories=["Cs"]), max_size=2)
    ),
    max_size=12,
).map("".join)
languages = st.sampled_from([None, "az", *SPELLED])


def rules(languages: str) -> list[Tokenizer]:
    """The rules that a row of the guide speaks of."""
    if languages == "all":
        return [UNICODE_WORDS, Tokenizer.here("icu-words-v2")]
    return [Tokenizer.here("icu-words-v2", one) for one in re.findall("[a-z]+", languages)]


def written(row: str) -> list[str]:
    """The spellings of a row, of which \\u1234 stands for a character that is not seen."""
    return [
        re.sub(r"\\u([0-9A-F]{4})", lambda found: chr(int(found[1], 16)), one)
        for one in row.split("` `")
    ]


@pytest.mark.parametrize(("spoken", "spellings", "word"), ROWS)
def test_each_row_of_the_guide(spoken: str, spellings: str, word: str) -> None:
    # Texts and lists alike. Kills: two spellings that stay apart, a word that is cut, a list whose
    # word no text has, a guide that promises another.
    word = written(word.strip("`"))[0]
    for rule in rules(spoken):
        for spelling in written(spellings):
            assert tokens_of(rule, spelling, f"({spelling})") == [[word], [word]], spelling
            lower = [spelling] if spelling == spelling.lower() else []
            listed = rule.respelled(pa.array(lower, pa.large_string())).to_pylist()
            assert [one.strip("'") for one in listed] == [word] * len(lower)
        assert Vocabulary([word], rule).terms.to_pylist() == [word]


def test_the_guide_has_the_rows() -> None:
    # Kills: a table whose rows the test above does not find.
    assert len(ROWS) >= 20
    assert {code for spoken, *_ in ROWS for code in re.findall("`(..)`", spoken)} >= {*SPELLED}


@settings(max_examples=400, deadline=None)
@given(text=texts, language=languages)
@example(text="\u0647\u0654", language="ur")
@example(text="\u03a3\u037a\u03b1", language=None)
def test_the_normal_form_is_one(text: str, language: str | None) -> None:
    # Kills: a second pass that changes more, a quick look that misses a character, a token that no
    # list can hold, a text whose words depend on the others of its batch.
    once = normalize(pa.array([text, "plain", "é"]), language)
    assert normalize(once, language).equals(once)
    assert normalize(pa.array([text]), language)[0] == once[0]
    rule = UNICODE_WORDS if language is None else Tokenizer.here("icu-words-v2", language)
    (found,) = tokens_of(rule, text)
    if found:
        assert len(Vocabulary(sorted(set(found)), rule)) == len(set(found))


@pytest.mark.slow
@pytest.mark.parametrize("around", ["א{}ת", "l{}l", "{}Σ{}α"])
def test_every_character_is_normal_after_one_pass(around: str) -> None:
    # Kills: a character that NFKC turns into one of those that are changed, and that is not among
    # them.
    points = [chr(i) for i in range(0x110000) if not 0xD800 <= i < 0xE000]
    once = normalize(pa.array([around.replace("{}", point) for point in points]), None)
    assert normalize(once, None).equals(once)


@pytest.mark.parametrize(
    ("text", "first", "now"),
    [
        ("col·legi", "col legi", "col·legi"),
        ("sof\u00adt wo\u200brd", "sof t wo rd", "soft word"),
        ("ㅋㅋ", "\u110f\u110f", "ㅋㅋ"),
        ("к‘а", "к а", "к'а"),
        ("τησ", "τησ", "της"),
        ("a·b l·m", "a b l m", "a b l m"),
        # A quick look must see beyond what is left out.
        ("col\u2022\u00adlegi", "col legi", "col·legi"),
        ('צה"\u00adל', "צה ל", "צהל"),
        ("Θεσ/νίκη σ σ' 'σ", "θεσ νίκη σ σ σ", "θες νίκη σ σ σ"),
        ("ກ\u200bຂ ខ្ញុំ\u200bចង់", "ກ ຂ ខ្ញុំ ចង់", "ກ ຂ ខ្ញុំ ចង់"),
        ("http:\u200b//a.b/c d", "http a b c d", "d"),
    ],
)
def test_the_first_version_keeps_its_words(text: str, first: str, now: str) -> None:
    # Kills: an old release that is made again with other words; a sign that joins what it parts.
    assert tokens_of(FIRST_WORDS, text) == [first.split()]
    assert tokens_of(UNICODE_WORDS, text) == [now.split()]
