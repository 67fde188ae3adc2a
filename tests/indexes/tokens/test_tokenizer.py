"""The tokeniser against its documented rule, written again in pure Python."""

from __future__ import annotations

import re
import unicodedata

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.provisional import urls

from quietcorpus.indexes.tokens.tokenizer import normalize, tokenize, tokens_in
from quietcorpus.indexes.tokens.tokenizers import FIRST_WORDS
from quietcorpus.indexes.tokens.vocabulary import Vocabulary

SPACES = "\t\n\v\f\r\x1c\x1d\x1e\x1f\x85"
# L a letter, M a mark, B what bars a run (numbers and underscores), ' an apostrophe, . the rest.
RUN = re.compile("[LB][LBM]*(?:'[LB][LBM]*)*")


def kind(character: str) -> str:
    if character in SPACES or unicodedata.category(character)[0] == "Z":
        return " "
    if character == "_" or unicodedata.category(character)[0] == "N":
        return "B"
    if character == "'":
        return "'"
    category = unicodedata.category(character)[0]
    return category if category in "LM" else "."


def reference(text: str) -> list[str]:
    """The rule of the module's docstring."""
    for _ in range(2):
        text = unicodedata.normalize("NFKC", text).lower()
    text = unicodedata.normalize("NFKC", text).replace("\u2019", "'")
    kinds = "".join(map(kind, text))
    tokens = []
    for chunk in re.finditer("[^ ]+", kinds):
        spelled = text[chunk.start() : chunk.end()]
        if "@" in spelled or "://" in spelled or spelled.startswith("www."):
            continue
        for run in RUN.finditer(chunk.group()):
            if "B" not in run.group():
                tokens.append(spelled[run.start() : run.end()])
    return tokens


def tokens_of(*texts: str) -> list[list[str]]:
    tokens = tokenize(pa.array(texts, pa.string()))
    assert tokens.offsets[0] == 0
    assert tokens.offsets[-1] == len(tokens.starts) == len(tokens.ends)
    words = [
        tokens.data[start:end].tobytes().decode()
        for start, end in zip(tokens.starts, tokens.ends, strict=True)
    ]
    return [words[a:b] for a, b in zip(tokens.offsets[:-1], tokens.offsets[1:], strict=True)]


FRAGMENTS = [
    *("a", "Z", "don't", "'", "''", "\u2019", "@", ":", "/", "://", "www.", "WWW.", "http://x.y"),
    *("a@b.c", "7", "_", "mp3", "x\u00b2", "\u2167", "\u0967", "\uff11", "\u00bd", "-", ".", "\0"),
    *(" ", "\n", "\u00a0", "\u2003", "\u3000", "\u200b", "\u200d", "\u202e", "\u2066", "\ufeff"),
    *("e\u0301", "\u0301", "\u20e3", "\ufe0f", "H\u0331", "\u0130", "\u03a3", "\u00df", "\ufb01"),
    *("\u4e2d\u6587", "\u3042", "\ud55c\uad6d", "\u0627\u0644", "\u05d0", "\u0e01\u0e33"),
    *("\u2764\ufe0f", "\U0001f469\u200d\U0001f4bb", "\U0001f1eb\U0001f1f7", "\U0001d400"),
    *("\uff20", "\ufe6b", "\uff1a\uff0f\uff0f", "\uff37\uff37\uff37.", "\u02bc", "\u0149"),
]
anything = st.text(st.characters(exclude_categories=["Cs"]))
fragments = st.lists(st.sampled_from(FRAGMENTS), max_size=12).map("".join)
texts = st.one_of(anything, fragments, st.builds("{}{}".format, fragments, anything))


@settings(max_examples=500)
@given(batch=st.lists(texts, max_size=4))
@example(["a'", "'a", "a''b", "a'b'c", "a'1", "1'a", "a'\u0301b", "'"])
@example(["www.", "www", "xwww.a", "www.a b", "a www.b", " www.a"])
@example(["a:/ /b", "a:/b", "://", "a ://b c", "@", "a@", "@a b"])
@example(["", "a", ""])
def test_the_kernel_is_the_rule(batch: list[str]) -> None:
    # Kills: state that leaks from chunk to chunk or text to text, a look-ahead past the end of a
    # text, bytes taken for code points, a class forgotten.
    assert tokens_of(*batch) == [reference(text) for text in batch]


WIDE = [" " * n for n in (1, 7, 55, 63, 64)] + ["a" * n for n in (2, 8, 17, 55, 62, 63, 64, 65)]
wide = st.lists(st.sampled_from([*WIDE, *FRAGMENTS[:22]]), max_size=14).map("".join)


@settings(max_examples=300)
@given(batch=st.lists(wide, max_size=4), beyond=st.sampled_from(["", "a", "'a", "@", "7", "www."]))
@example(["a" * 64], "a")
@example([" " * 61 + "www. b"], "")
@example([" " * 60 + "www.a b"], "")
@example(["a b" + "c" * 61 + "@ d"], "")
def test_blocks_do_not_matter(batch: list[str], beyond: str) -> None:
    # The kernel looks at 64 bytes at once. Kills: a run, `www.` or a look-ahead that ends with the
    # block, a block that goes beyond its text, tokens taken back from an earlier chunk, a buffer
    # that ends with its text.
    assert tokens_of(*batch) == [reference(text) for text in batch]
    assert tokens_of(*batch, beyond)[:-1] == [reference(text) for text in batch]
    exact = b"".join(text.encode() for text in batch)
    ends = np.cumsum([0, *(len(text.encode()) for text in batch)])
    sized = pa.LargeStringArray.from_buffers(
        len(batch), pa.py_buffer(ends.astype(np.int64)), pa.py_buffer(exact)
    )
    tokens = tokens_in(sized)
    assert len(tokens.data) >= len(exact) + 64
    np.testing.assert_array_equal(
        tokens.starts, tokens_in(pa.array(batch, pa.large_string())).starts
    )


@settings(max_examples=300)
@given(batch=st.lists(texts, min_size=1, max_size=4))
def test_a_text_is_tokenised_alone(batch: list[str]) -> None:
    # Kills: a normal form that depends on whether the whole batch is ASCII.
    assert tokens_of(*batch) == [tokens_of(text)[0] for text in batch]


@settings(max_examples=500)
@given(text=texts)
def test_every_token_can_be_a_term(text: str) -> None:
    # A privately selected vocabulary is made of tokens: refusing one would end the job, and would
    # tell of the corpus. Kills: a normal form that a second pass would change.
    words = sorted(set(tokens_of(text)[0]))
    if words:
        assert Vocabulary(words, FIRST_WORDS).terms.to_pylist() == words


@pytest.mark.slow
def test_normalising_twice_changes_nothing() -> None:
    # Every code point alone, and every letter below U+0250 under every combining diacritic.
    points = [chr(i) for i in range(0x110000) if not 0xD800 <= i < 0xE000]
    letters = [c for c in points[:0x250] if c.isalpha()]
    pairs = [letter + chr(mark) for letter in letters for mark in range(0x300, 0x370)]
    once = normalize(pa.array(points + pairs, pa.string()))
    assert normalize(once).equals(once)


def test_normal_forms_are_composed() -> None:
    # apache/arrow#51225: a composing form that does not compose lets no accented word be a term.
    assert normalize(pa.array(["Cafe\u0301", "\u1112\u1161\u11ab"])).to_pylist() == [
        "caf\u00e9",
        "\ud55c",
    ]
    assert tokens_of("CAFE\u0301 caf\u00e9") == [["caf\u00e9", "caf\u00e9"]]


EMOJI = [
    "\U0001f600",
    "\u2764\ufe0f",  # with a variation selector, which is a mark
    "1\ufe0f\u20e3",
    "\U0001f469\u200d\U0001f4bb",
    "\U0001f44d\U0001f3fd",
    "\U0001f1eb\U0001f1f7",
    "\U0001f3f4\U000e0067\U000e007f",
]
PERSONAL = [
    st.emails(),
    st.emails().map(lambda e: f"<{e}>,"),
    st.emails().map(lambda e: f"mailto:{e}?subject=x"),
    st.emails().map(lambda e: e.replace("@", "\uff20")),
    urls(),
    urls().map(lambda u: f"({u})."),
    urls().map(lambda u: u.replace("://", "\uff1a\uff0f\uff0f")),
    urls().map(lambda u: "www." + u.split("://")[1]),
    urls().map(lambda u: "WWW." + u.split("://")[1]),
    # Digits. Numerals that NFKC spells in letters (U+2167 as viii) are words.
    st.text(st.characters(categories=["Nd"]), min_size=1),
    st.from_regex(r"[0-9]{4}([- ./:][0-9]{2,4}){1,4}", fullmatch=True),
    st.from_regex(r"[A-Z]{2}[0-9]{2}[0-9A-Z]{10,30}", fullmatch=True),
    st.from_regex(r"\+?\(?[0-9]{1,4}\)?([- ]?[0-9]{2,4}){2,3}", fullmatch=True),
    st.from_regex(r"[a-z]+_[a-z0-9]+", fullmatch=True),
    st.lists(
        st.sampled_from(EMOJI),
        min_size=1,
    ).map("".join),
]


@pytest.mark.slow
@settings(max_examples=400)
@given(secret=st.one_of(PERSONAL))
def test_addresses_numbers_and_emoji_leave_nothing(secret: str) -> None:
    # Not a fragment: not the host's name, not the digits' letters, not a variation selector.
    assert tokens_of(f"write {secret} today", secret) == [["write", "today"], []]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It's John\u2019s.", ["it's", "john's"]),
        ("'tis rock 'n' roll'", ["tis", "rock", "n", "roll"]),
        ("state-of-the-art", ["state", "of", "the", "art"]),
        ("snake_case CamelCase mp3", ["camelcase"]),
        ("a.b,c;d", ["a", "b", "c", "d"]),
        ("\u0391\u03a3 \u0391\u03a3\u0391", ["\u03b1\u03c2", "\u03b1\u03c3\u03b1"]),
        ("\ufb01nd \u1e9eharp", ["find", "\u00dfharp"]),
        ("a\0b\u200bc", ["a", "b", "c"]),
        ("\u202eabc\u202c def", ["abc", "def"]),
        ("\u4e2d\u6587 \ud55c\uad6d\uc5b4", ["\u4e2d\u6587", "\ud55c\uad6d\uc5b4"]),
        ("x\u00a0y\u2003z\u3000w", ["x", "y", "z", "w"]),
        ("\u0301a\u0301b", ["\u00e1b"]),
    ],
)
def test_examples(text: str, expected: list[str]) -> None:
    assert tokens_of(text) == [expected]


@pytest.mark.parametrize("kind_of_string", [pa.string(), pa.large_string()])
def test_slices_and_both_string_types(kind_of_string: pa.DataType) -> None:
    # Kills: offsets of a slice taken from the start of its buffer.
    whole = pa.array(["zero zero", "One \u00e9", "", "two"], kind_of_string)
    tokens = tokenize(whole[1:])
    words = [
        tokens.data[a:b].tobytes().decode() for a, b in zip(tokens.starts, tokens.ends, strict=True)
    ]
    assert words == ["one", "\u00e9", "two"]
    np.testing.assert_array_equal(tokens.offsets, [0, 2, 2, 3])
    assert len(tokenize(whole[:0]).starts) == 0
