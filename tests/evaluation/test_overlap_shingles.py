"""Words and shingles of texts in any script."""

from __future__ import annotations

import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from overlapping_texts import array

from quietcorpus.evaluation.overlap import CHARACTERS, LEAST_WORDS, shingles_of, words_of

TEXTS = st.lists(st.text(max_size=30), min_size=1, max_size=6)


def counts(*texts: str) -> list[int]:
    found: list[int] = np.diff(words_of(array(texts)).offsets).tolist()
    return found


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        ("1, 2; 3!", 0),
        ("one", 1),
        ("Don't mail me@example.org, 3 times", 3),
        ("мама мыла раму", 3),
        ("مرحبا بالعالم", 2),
        ("नमस्ते दुनिया", 2),
        ("我喜欢猫", 4),
        ("ABC公司", 3),
        ("ที่", 1),  # two of the three characters are marks
    ],
)
def test_words_of_every_script(text: str, count: int) -> None:
    assert counts(text) == [count]
    assert counts("", text, "x y") == [0, count, 2]  # whatever stands beside it


def normal(text: str) -> str:
    """Whatever two equal texts have in common."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).lower())
    folded = folded.replace("\u2019", "'")
    return "".join(one for one in folded if ord(one) > 32 and not one.isspace())


@settings(deadline=None)  # kernels are compiled
@given(TEXTS)
def test_texts_are_equal_but_for_case_and_spaces(texts: list[str]) -> None:
    # Kills: bytes of another text, an order of bytes that does not matter, an empty text that
    # equals another.
    encodable = [text.encode("utf-8", "ignore").decode() for text in texts]
    again = [f" {text.upper()}\n" for text in encodable if text.upper().lower() == text.lower()]
    given = encodable + again
    for one, whole in zip(given, words_of(array(given)).wholes, strict=True):
        assert (whole == 0) == (normal(one) == "")
        for other, its in zip(given, words_of(array(given)).wholes, strict=True):
            assert (whole == its) == (normal(one) == normal(other))


def test_few_words_are_short_and_so_are_few_characters() -> None:
    # Kills: a Thai character that counts as a word; the limit off by one.
    texts = [
        " ".join(["word"] * (LEAST_WORDS - 1)),
        " ".join(["word"] * LEAST_WORDS),
        "ก" * (CHARACTERS * LEAST_WORDS - 1),
        "ก" * CHARACTERS * LEAST_WORDS,
        " ".join(["word"] * (LEAST_WORDS - 1)) + "猫" * CHARACTERS,
        "",
    ]
    assert words_of(array(texts)).short.tolist() == [True, False, True, False, False, True]


def test_shingles_are_runs_of_three_words_in_their_order() -> None:
    # Kills: a shingle that forgets a word, its place, or the last run.
    words = words_of(array(["a b c d", "b c d", "c b d", "a b", "e b c", "a b d", "a e c"]))
    found = []
    for start, end in zip(words.offsets, words.offsets[1:], strict=False):
        space = np.zeros(9, np.uint64)
        count = shingles_of(words.hashes[start:end], space)
        found.append(space[:count].tolist())
    assert [len(one) for one in found] == [2, 1, 1, 0, 1, 1, 1]
    assert found[0][1] == found[1][0]
    assert len({shingle for one in found for shingle in one}) == 6
