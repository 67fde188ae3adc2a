# ruff: noqa: RUF001 - letters of many scripts
"""The tokenisers of every language: invariants over many scripts, and each documented choice."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
import unicodedata
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from quietcorpus.indexes.tokens import segmentation, tokenizers
from quietcorpus.indexes.tokens.languages import LANGUAGES
from quietcorpus.indexes.tokens.tokenizer import FIRST_NAME, NAME, Tokens, tokenize
from quietcorpus.indexes.tokens.tokenizers import (
    FIRST_WORDS,
    ICU_WORDS_NAME,
    NAMES,
    UNICODE_WORDS,
    Tokenizer,
    TokenizerError,
)
from quietcorpus.indexes.tokens.vocabulary import Vocabulary

pytest.importorskip("icu4py")

FRAGMENTS = [
    *(
        "cafe\u0301",
        "\u0130I\u0131i",
        "I\u0307",
        "l'h\u00f4tel",
        "qu'",
        "l'",
        "dell'acqua",
        "\u00df",
    ),
    *("x\u0302l'a", "'l'a", "''d'a", "\u0301l'eau", "l'd'un", "rock'n'roll", "l'8", "l'\u4e2d"),
    *("\u041c\u043e\u0441\u043a\u0432\u0430", "\u0391\u03a3", "\u03ac\u03bb\u03c6\u03b1"),
    *("\u0627\u0644\u0633\u0651\u064e\u0644\u0627\u0645", "\u0640", "\u064e", "\u0671\ufefb"),
    *("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", "\u0660", "\u05e9\u05c1\u05b8", "\u05f3"),
    *('\u05e6\u05d4"\u05dc', "\u05e6\u05d4\u05f4\u05dc", "\ufb2a", "\u0915\u094d\u200d\u092f"),
    *("\u0939\u093f\u0928\u094d\u0926\u0940", "\u0967", "\u0e19\u0e49\u0e33", "\u0e17\u0e33\u0e07"),
    *("\u0e01\u0e23\u0e38\u0e07\u0e40\u0e17\u0e1e\u0e2f", "\u0e46", "\u0e31", "\u0e52\u0e55"),
    *("\u0e99\u0ecd\u0eb2", "\u17a2\u17d2\u1793\u1780", "\u1019\u103c\u1014\u103a\u1019\u102c"),
    *("\u4eca\u65e5\u306f", "\u5317\u4eac\u5927\u5b66", "\u30e9\u30fc\u30e1\u30f3", "\uff97\uff70"),
    *("\u3099", "\u309b", "\u3007", "\u3005", "\u4e00\u4e8c", "\u845b\U000e0100", "\U00020bb7"),
    *("\ud55c\uad6d\uc5b4", "\u1112\u1161\u11ab", "\ua9e0", "\u200b", "\u200d", "\u00ad", "\ufe0f"),
    *("\U0001f469\u200d\U0001f4bb", "\u2764\ufe0f", "1\ufe0f\u20e3", "mp3", "_", "7", " ", "\n"),
    *("\u3000", "\u3002", "\uff0c", "\u300d", "-", ".", "/", ":", "@", "a@b.c", "http://x.y/"),
    *(
        "www.",
        "://",
        "?q=",
        "abc",
        "\ufeff",
        "\u0301",
        "\u2019",
        "\u02bc",
        "\u2135",
        "\u0ecd\u0eb2",
    ),
]
SCRIPTS = [
    *((0x61, 0x7A), (0x300, 0x36F), (0xC0, 0x24F), (0x370, 0x3FF), (0x400, 0x4FF), (0x590, 0x5FF)),
    *((0x600, 0x6FF), (0x900, 0x97F), (0xE00, 0xE7F), (0xE80, 0xEFF), (0x1000, 0x109F)),
    *((0x1780, 0x17FF), (0x3040, 0x30FF), (0x4E00, 0x4FFF), (0xAC00, 0xAC9F), (0x1F300, 0x1F5FF)),
]
letters = st.sampled_from(SCRIPTS).flatmap(
    lambda ends: st.text(st.characters(min_codepoint=ends[0], max_codepoint=ends[1]), max_size=6)
)
pieces = st.one_of(
    st.sampled_from(FRAGMENTS),
    letters,
    st.text(st.characters(exclude_categories=["Cs"]), max_size=3),
)
texts = st.lists(pieces, max_size=10).map("".join)
languages = st.sampled_from(
    [None, "fr", "it", "ca", "tr", "az", "th", "zh", "ja", "ar", "he", "hi"]
)


def icu(language: str | None = None) -> Tokenizer:
    return Tokenizer.here(ICU_WORDS_NAME, language)


def words_in(tokens: Tokens) -> list[list[str]]:
    words = [
        tokens.data[start:end].tobytes().decode()
        for start, end in zip(tokens.starts, tokens.ends, strict=True)
    ]
    return [words[a:b] for a, b in zip(tokens.offsets[:-1], tokens.offsets[1:], strict=True)]


def tokens_of(tokenizer: Tokenizer, *given: str) -> list[list[str]]:
    return words_in(tokenizer.tokenize(pa.array(given, pa.string())))


@pytest.mark.slow
@settings(max_examples=600, deadline=None)
@given(text=texts, language=languages)
@example("\u0301l'eau", "fr")
@example("'l'eau x''l'eau 1'l'eau", "fr")
@example("\u0e19\u0e49\u0e33", "th")
def test_tokens_are_words_of_the_normal_form(text: str, language: str | None) -> None:
    # Kills: a separator in a token, a normal form that a second pass changes, a token that no
    # vocabulary can hold, a digit or an address that comes out.
    rule = icu(language)
    normal = rule.normalize(pa.array([text])).to_pylist()[0]
    (found,) = tokens_of(rule, text)
    assert rule.normalize(pa.array([normal])).to_pylist() == [normal]
    assert tokens_of(rule, normal) == [found]
    place = 0
    for word in found:
        place = normal.index(word, place) + len(word)
        kinds = {unicodedata.category(c)[0] for c in word.replace("'", "")}
        assert kinds <= {"L", "M"}
        assert "_" not in word
    assert words_in(rule.spelled(pa.array(found, pa.string()))) == [[word] for word in found]
    if found:
        assert len(Vocabulary(sorted(set(found)), rule)) == len(set(found))


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(batch=st.lists(texts, min_size=1, max_size=4), language=languages)
def test_a_text_is_tokenised_alone(batch: list[str], language: str | None) -> None:
    # Kills: words that depend on other texts of a batch, or on another chunk of the same text.
    rule = icu(language)
    alone = [tokens_of(rule, text)[0] for text in batch]
    assert tokens_of(rule, *batch) == alone
    assert tokens_of(rule, " ".join(batch)) == [[word for found in alone for word in found]]


@settings(max_examples=300, deadline=None)
@given(text=st.text(st.characters(max_codepoint=0x58F, exclude_categories=["Cs"]), max_size=30))
def test_scripts_with_spaces_go_by_the_first_rule(text: str) -> None:
    # Kills: a second rule.
    assert tokens_of(icu(), text) == tokens_of(UNICODE_WORDS, text)
    first = Tokenizer.here("icu-words-v1")
    text = text.replace("\u00ad", "").replace("\u034f", "")
    assert tokens_of(first, text) == words_in(tokenize(pa.array([text])))


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("th", "น้ำท่วมที่กรุงเทพฯ ปี๒๕๕๔", "น้ำ ท่วม ที่ กรุงเทพฯ ปี"),
        ("zh", "我喜欢在北京大学学习中文。", "我 喜欢 在 北京 大学 学习 中文"),
        ("ja", "東京タワーへ行く。ﾗｰﾒﾝ", "東京タワー へ 行く ラーメン"),
        ("my", "ဈေးသွားချင်တယ်", "ဈေးသွား ချင် တယ်"),
        ("lo", "ຂ້ອຍ ນ້ຳ", "ຂ້ອຍ ນ້ຳ"),
        ("km", "ខ្ញុំចង់ទៅផ្សារ", "ខ្ញុំ ចង់ទៅ ផ្សារ"),
        ("ko", "한국어를 배워요", "한국어를 배워요"),
        ("fr", "L’homme qu'il aime, aujourd’hui", "l homme qu il aime aujourd'hui"),
        ("fr", "rock'n'roll 'l'eau' prud'homme", "rock'n'roll l eau prud'homme"),
        ("it", "dell'acqua un'amica", "dell acqua un amica"),
        ("ca", "l'home d'aquí", "l home d aquí"),
        (None, "l'homme", "l'homme"),
        ("en", "it's", "it's"),
        ("tr", "ISPARTA İstanbul'da I\u0307", "ısparta istanbul'da i"),
        ("en", "ISPARTA", "isparta"),
        ("ar", "السَّلَامُ الـــعربية أ آ", "السلام العربية أ آ"),
        ("he", 'שָׁלוֹם צה״ל צה"ל ג׳ירפה', "שלום צהל צהל ג'ירפה"),
        ("fa", "می\u200cخواهم", "میخواهم"),
        ("hi", "क्\u200dया हिन्दी", "क्या हिन्दी"),
        ("de", "Donau\u00addampf", "donaudampf"),
        (None, "\u200e\u202babc\u202c \u845b\U000e0100", "abc 葛"),
        (None, "abcไทยmp3ไทย_ไทย", "abc ไทย ไทย ไทย"),
        (None, "联系foo@bar.com谢谢", "联系 谢谢"),
        (None, "看www.例子.com/路径吧 再见", "看 再见"),
        (None, "看http://例子.com/路径, 再见", "看 再见"),
        (None, "@张三 你好", "你好"),
    ],
)
def test_examples(language: str | None, text: str, expected: str) -> None:
    assert tokens_of(icu(language), text) == [expected.split()]


GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "languages.md"
ROWS = re.findall(
    r"^\| `(..)`(?:, `..`)? \| .* \| ([^`]+) \| (.+) \|$", GUIDE.read_text("utf-8"), re.M
)


@pytest.mark.parametrize(("language", "text", "expected"), ROWS)
def test_the_guides_choices(language: str, text: str, expected: str) -> None:
    # Kills: a guide that promises other words.
    assert tokens_of(icu(language), text) == [expected.split()]


def test_runs_are_divided_alone() -> None:
    # The end of one run may not decide where a word of another ends.
    # Kills: runs that ICU sees side by side.
    runs = ["ท่วมที่", "北京大学", "กรุงเทพ", "東京タワーへ", "ကျွန်တော်", "ចង់ទៅ"]
    together = tokens_of(icu(), "".join(runs))[0]
    assert together == [word for found in tokens_of(icu(), *runs) for word in found]


@pytest.mark.slow
def test_words_do_not_depend_on_the_machines_locale() -> None:
    # Kills: breaks by the locale of the process.
    code = (
        "import pyarrow as pa; from quietcorpus.indexes.tokens.tokenizers import Tokenizer;"
        "text = pa.array(['東京タワーへ行く น้ำท่วมที่']);"
        "print(Tokenizer.here('icu-words-v2').tokenize(text).starts)"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "LANG": lang, "LC_ALL": lang, "LANGUAGE": lang},
            capture_output=True,
            check=True,
        ).stdout
        for lang in ("C", "fi_FI.UTF-8")
    }
    assert len(found) == 1


def test_a_rule_is_the_same_after_a_journey() -> None:
    for rule in (UNICODE_WORDS, FIRST_WORDS, icu(), icu("fr"), Tokenizer.here("icu-words-v1")):
        assert pickle.loads(pickle.dumps(rule)) == rule
        assert Tokenizer.of_record(rule.record) == rule
        assert Tokenizer.of_law(rule.law) == rule
        assert Tokenizer.of_description(rule.description) == rule
    terms = ["eau", "homme"]
    arrived = pickle.loads(pickle.dumps(Vocabulary(terms, icu("fr"))))
    assert arrived.tokenizer == icu("fr")


def test_the_law_of_the_first_rule_stays() -> None:
    # Releases made before there were others are drawn by it. Kills: another key in the law.
    unicode = unicodedata.unidata_version
    assert FIRST_WORDS.law == {"name": "unicode-words-v1", "unicode": unicode}
    assert FIRST_WORDS.record == FIRST_NAME
    assert FIRST_WORDS.description == (
        f"unicode-words-v1 (NFKC, lower-case, letters only; Unicode {unicode})"
    )
    rules = (
        UNICODE_WORDS,
        FIRST_WORDS,
        icu(),
        icu("th"),
        icu("fr"),
        Tokenizer.here("icu-words-v1"),
    )
    assert len({str(rule.law) for rule in rules}) == len(rules)


def test_another_icu_finds_no_words(monkeypatch: pytest.MonkeyPatch) -> None:
    # Kills: a worker that divides texts by another dictionary than the launcher's.
    rule = icu("th")
    monkeypatch.setattr(tokenizers, "icu_version", lambda: "1.0")
    with pytest.raises(TokenizerError, match=r"this process has ICU 1\.0, and words are"):
        rule.tokenize(pa.array(["ไทย"]))
    monkeypatch.setattr(tokenizers, "icu_version", lambda: None)
    with pytest.raises(TokenizerError, match="this process has no ICU"):
        rule.tokenize(pa.array(["ไทย"]))
    with pytest.raises(TokenizerError, match=r"icu4py is not installed; install the extra"):
        icu("th")


@pytest.mark.parametrize(
    ("name", "language", "message"),
    [
        ("bpe", None, f"'bpe' is not a tokeniser; give one of {', '.join(NAMES)}"),
        (NAME, "th", f"{NAME} is the same for all languages; drop the language"),
        (ICU_WORDS_NAME, "xx", f"'xx' is not a language that {ICU_WORDS_NAME} knows; give one of"),
    ],
)
def test_rules_that_are_refused(name: str, language: str | None, message: str) -> None:
    with pytest.raises(TokenizerError) as caught:
        Tokenizer.here(name, language)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    "record", ["bpe", None, 3, [], {}, {"name": ICU_WORDS_NAME}, {"name": NAME, "unicode": "1"}]
)
def test_records_that_are_refused(record: object) -> None:
    with pytest.raises(TokenizerError, match=r"the tokenizer .*, and this software knows"):
        Tokenizer.of_record(record)


def test_a_word_that_icu_would_divide_is_one_word_of_a_list() -> None:
    # Where a word stands alone, ICU may divide it, and in a text it may not.
    # Kills: a privately selected word that ends the job.
    assert len(tokens_of(icu("km"), "ទៅផ្សារ")[0]) > 1
    assert len(Vocabulary(["ទៅផ្សារ"], icu("km"))) == 1


def test_every_language_has_a_rule() -> None:
    text = "L'eau İI ไทย 中文 שָׁלוֹם"
    assert all(tokens_of(icu(language), text)[0] for language in LANGUAGES)
    assert segmentation.icu_version() is not None
