"""Public texts that are in private documents: all that were planted, and no others."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from overlapping_texts import LETTERS, WITHOUT_SPACES, array, edited, words_in

from quietcorpus.evaluation.overlap import EDITS, LEAST_WORDS, PublicTexts

SPACES = "\x1f\x85\xa0\u1680\u2003\u2028\u2029\u3000"
KNOWN = words_in("Latin", 3000, Random(1))


def text(words: list[str], script: str = "Latin") -> str:
    return ("" if script in WITHOUT_SPACES else " ").join(words)


def compared(public: list[str], documents: list[str], batch: int = 7) -> tuple[set[int], set[int]]:
    """The numbers of the texts that equal a document, and of those near one."""
    texts = PublicTexts([array(public[: len(public) // 2]), array(public[len(public) // 2 :])])
    nothing = np.zeros(len(texts), np.bool_)
    equal, near = set(), set()
    for start in range(0, len(documents), batch):
        pairs = texts.compare(array(documents[start : start + batch]), nothing)
        equal |= set(pairs.equal.tolist())
        near |= set(pairs.near.tolist())
    return equal, near


@pytest.mark.parametrize("script", LETTERS)
def test_edited_copies_are_found_in_every_script(script: str) -> None:
    # Half of the texts are copies with 20 edits for each 100 words; the others have none. 12 edits
    # take 36 of the 58 shingles of 60 words at most, and leave more than the 12 that are asked for:
    # all must be found. Kills: words or offsets of another text, a shared count that is not
    # cleared, a filter that asks for too much.
    generator = Random()
    known = words_in(script, 3000, generator)
    length = 150 if script in WITHOUT_SPACES else 60
    documents = [generator.choices(known, k=length) for _ in range(300)]
    copies = [edited(own, length // 5, known, generator) for own in documents[:150]]
    others = [generator.choices(known, k=length) for _ in range(150)]
    public = [text(one, script) for one in copies + others]
    equal, near = compared(public, [text(one, script) for one in documents])
    assert not equal
    assert near == set(range(150))


@pytest.mark.parametrize("length", [LEAST_WORDS, 20, 300])
def test_the_shorter_text_is_sought_in_the_longer_one(length: int) -> None:
    # Kills: only the public one sought in the private one, or the other way about; a share of the
    # longer one's shingles.
    generator = Random()
    whole = generator.choices(KNOWN, k=20 * length)
    start = generator.randrange(len(whole) - length)
    part = whole[start : start + length]
    assert compared([text(part), "x"], [text(whole)]) == (set(), {0})
    assert compared([text(whole), "x"], [text(part)]) == (set(), {0})


def test_more_edits_than_are_allowed_are_not_found() -> None:
    # Kills: a limit of edits that is another one than is stated, by one. Each edit hits a word of
    # its own, eight words apart where there are few: shingles enough are shared.
    generator = Random()
    words = generator.choices(KNOWN, k=100)
    allowed = int(EDITS * 100)
    for edits, found in ((allowed, {0}), (allowed + 1, set())):
        changed = [*words[: 100 - edits], *(f"other{'x' * i}" for i in range(edits))]
        assert compared([text(changed), "x"], [text(words)]) == (set(), found)


def test_equal_texts_are_found_however_short_and_whatever_they_are_like() -> None:
    public = ["OK!", "日本", "4111 1111", "", " ", "🙂", "Ünïcode", "nothing like it", *SPACES]
    documents = ["ok!", "日本", "41111111", "", "\n", "🙂", "ünïcode".upper(), "other", *SPACES]
    equal, near = compared(public, documents)
    assert equal == {0, 1, 2, 5, 6}  # empty texts equal nothing
    assert near == set()


def test_all_of_several_equal_texts_are_found_and_none_is_near_as_well() -> None:
    generator = Random()
    one, other = (text(generator.choices(KNOWN, k=30)) for _ in range(2))
    assert compared([one, other, one.upper(), one], [one, "x", one]) == ({0, 2, 3}, set())


def test_short_texts_are_near_nothing() -> None:
    generator = Random()
    words = generator.choices(KNOWN, k=LEAST_WORDS)
    assert compared([text(words), "x"], [text(words) + " more"]) == (set(), {0})
    assert compared([text(words[1:]), "x"], [text(words) + " more"]) == (set(), set())
    assert compared([text(words) + " more", "x"], [text(words[1:])]) == (set(), set())


def test_settled_texts_are_sought_as_equals_alone() -> None:
    generator = Random()
    one, other = (text(generator.choices(KNOWN, k=30)) for _ in range(2))
    texts = PublicTexts([array([one, other])])
    documents = array([one + " more", other + " more", one, other])
    pairs = texts.compare(documents, np.array([True, False]))
    assert pairs.equal.tolist() == [0, 1]
    assert pairs.near.tolist() == [1]


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(st.lists(st.text(max_size=200), min_size=1, max_size=20))
def test_any_texts_equal_themselves_and_nothing_fails(texts: list[str]) -> None:
    readable = [one.encode("utf-8", "ignore").decode() for one in texts]
    equal, _ = compared(readable, readable, batch=3)
    assert {number for number, one in enumerate(readable) if one.strip()} >= equal
    assert equal >= {number for number, one in enumerate(readable) if any(map(str.isalnum, one))}


def test_no_documents_find_nothing() -> None:
    assert compared(["a text", "x"], []) == (set(), set())
    texts = PublicTexts([array(["a text"])])
    assert texts.compare(array([]), np.zeros(1, np.bool_)).equal.tolist() == []
