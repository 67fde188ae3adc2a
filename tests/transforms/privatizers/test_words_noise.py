"""The noise of a word-level release depends on what it should, and on nothing else."""

from __future__ import annotations

import itertools
import os
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from privatized_words import (
    ALIKE,
    BOTH,
    BRR,
    EXPONENTIAL,
    LONG,
    MADLIB,
    MECHANISMS,
    TINY,
    VICKREY,
    WORDS,
    documents,
    independent,
    parameters,
    release,
    texts_of,
)

from quietcorpus.indexes.words.word_index import contents, open_index, save
from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.mechanisms.words.mechanism import WordMechanism
from quietcorpus.mechanisms.words.vickrey import Vickrey
from quietcorpus.transforms.artefacts.folders import IndexSource
from quietcorpus.transforms.privatizers.words import Longest, WordPrivatizer, parts_read


@BOTH
def test_a_cut_is_part_of_the_law_and_what_is_cut_of_the_address(
    mechanism: WordMechanism, key: ReleaseKey
) -> None:
    # Kills: noise shared between two lengths, or between texts that are equal up to the cut.
    cut = parameters(mechanism, TINY, longest=Longest(1024, "cut"))
    longer = parameters(mechanism, TINY, longest=Longest(1025, "cut"))
    (one,), (same,) = (release(cut, ALIKE, key, LONG) for _ in range(2))
    assert one == same
    (other,) = release(longer, ALIKE, key, LONG)
    assert independent(one, other)
    (further,) = release(cut, ALIKE, key, f"{LONG} {WORDS[0]}")
    assert independent(one, further)


@BOTH
def test_a_batch_may_be_cut_anywhere(mechanism: WordMechanism, key: ReleaseKey) -> None:
    # Texts longer than what is searched at once, empty ones, unknown words; workers of their own.
    # Kills: noise or ids by a document's or a word's place in its batch.
    texts = [LONG * 3, "", "wa", "wb " * 2047, "zebra wa", LONG, "okapi", "wc", "wd " * 4097]
    given = parameters(mechanism, Fraction(1), out_of_vocabulary="draw")
    whole = WordPrivatizer(given, ALIKE, key).release(documents(*texts)).rows
    assert whole["text"].to_pylist()[2] in WORDS
    for cuts in ([1, 2, 3, 4, 5, 6, 7, 8], [4], [3, 6]):
        edges = [0, *cuts, len(texts)]
        privatizer = WordPrivatizer(given, ALIKE, key)
        parts = [
            privatizer.release(documents(*texts[start:stop], first_row=start)).rows
            for start, stop in itertools.pairwise(edges)
        ]
        assert pa.concat_tables(parts).equals(whole)


@pytest.mark.parametrize("mechanism", [MADLIB, BRR, EXPONENTIAL])
def test_per_document_batches_may_be_cut_anywhere(
    mechanism: WordMechanism, key: ReleaseKey
) -> None:
    # Where epsilon goes by length, documents of many lengths share a batch. Kills: the epsilon of
    # another document, and one of the longest, first or mean length.
    texts = ["wa " * length for length in (1, 700, 3, 3, 0, 2500, 7)]
    given = parameters(mechanism, Fraction(30), per="document")
    privatizer = WordPrivatizer(given, ALIKE, key)
    whole = privatizer.release(documents(*texts)).rows
    alone = [
        privatizer.release(documents(text, first_row=row)).rows for row, text in enumerate(texts)
    ]
    assert pa.concat_tables(alone).equals(whole)


@BOTH
def test_equal_documents_are_independent(mechanism: WordMechanism, key: ReleaseKey) -> None:
    # At other rows, in other files and under other keys; and so are the words of one document.
    # Kills: an address without the row or the file, one address for all words.
    given = parameters(mechanism, TINY)
    texts = release(given, ALIKE, key, LONG, LONG, "wb " + LONG)
    texts += release(given, ALIKE, key, LONG, source="other")
    texts += release(given, ALIKE, ReleaseKey.derive(os.urandom(32), "test", b""), LONG)
    texts[2] = texts[2].split(" ", 1)[1]
    for one, other in itertools.combinations(texts, 2):
        assert independent(one, other)
    words = texts[0].split(" ")
    assert independent(" ".join(words[::2]), " ".join(words[1::2]))
    assert not independent(texts[0], texts[0])  # the control


@BOTH
def test_128_equal_documents_have_128_outputs(mechanism: WordMechanism, key: ReleaseKey) -> None:
    # 16 words of 16: two of the 128 agree in all with probability below 2^-50.
    privatizer = WordPrivatizer(parameters(mechanism, TINY), ALIKE, key)
    rows = privatizer.release(documents(*[" ".join(WORDS)] * 128)).rows
    assert len(set(rows["text"].to_pylist())) == 128
    assert len(set(rows["id"].to_pylist())) == 128


@BOTH
def test_another_word_changes_all_the_noise(mechanism: WordMechanism, key: ReleaseKey) -> None:
    # The address stands for the words: one that changes, or is added at the end, changes the rest.
    # Unknown words are left out before it, where they are dropped, and are part of it where drawn.
    given = parameters(mechanism, TINY)
    text, other, more, strange = (
        release(given, ALIKE, key, LONG)[0],
        *(
            release(given, ALIKE, key, changed)[0]
            for changed in (LONG[:-2] + "wa", LONG + " wa", LONG + " zebra")
        ),
    )
    assert independent(text, other)
    assert independent(text, more.rsplit(" ", 1)[0])
    assert strange == text
    draw = parameters(mechanism, TINY, out_of_vocabulary="draw")
    text, strange = (
        release(draw, ALIKE, key, LONG)[0],
        release(draw, ALIKE, key, LONG + " zebra")[0],
    )
    assert independent(text, strange.rsplit(" ", 1)[0])


CHANGES: dict[str, dict[str, Any]] = {
    "epsilon": {"epsilon": Fraction(1, 10**6 + 1)},
    "per": {"per": "document"},
    "policy": {"out_of_vocabulary": "draw"},
    "index": {"index": IndexSource("mechanism.index", "memory", "another digest")},
}


@BOTH
@pytest.mark.parametrize("change", CHANGES)
def test_another_setting_changes_all_the_noise(
    mechanism: WordMechanism, change: str, key: ReleaseKey
) -> None:
    # Kills: a setting left out of the stage's parameters, with which two releases of one text
    # would be one noise at two scales.
    given = parameters(mechanism, TINY)
    (text,) = release(given, ALIKE, key, LONG)
    (other,) = release(replace(given, **CHANGES[change]), ALIKE, key, LONG)
    assert independent(text, other)


def test_the_mechanisms_share_no_noise(key: ReleaseKey) -> None:
    given = parameters(MADLIB, TINY)
    (text,) = release(given, ALIKE, key, LONG)
    assert independent(text, release(replace(given, mechanism=BRR), ALIKE, key, LONG)[0])
    # The stage's keys differ, and with them the ids of equal documents.
    ids = {
        WordPrivatizer(parameters(mechanism, TINY), ALIKE, key)
        .release(documents("wa"))
        .rows["id"][0]
        .as_py()
        for mechanism in MECHANISMS
    }
    assert len(ids) == len(MECHANISMS)


@BOTH
def test_where_an_index_lies_changes_nothing(
    mechanism: WordMechanism, key: ReleaseKey, tmp_path: Path
) -> None:
    # Saved, found and mapped, as a worker does it; a moved index repeats its noise. Kills: the URI
    # in place of the digest, or a path that needs arrays which can be written to.
    save(str(tmp_path), ALIKE.manifest, ALIKE.vocabulary, ALIKE.vectors, ALIKE.codes)
    source = IndexSource.resolve("mechanism.index", str(tmp_path))
    given = parameters(mechanism, Fraction(1), index=source, out_of_vocabulary="draw")
    mapped = given.privatizer(key)
    text = LONG + " zebra"
    (expected,) = release(replace(given, index=replace(source, uri="elsewhere")), ALIKE, key, text)
    assert texts_of(mapped.release(documents(text))) == [expected]


@BOTH
def test_the_format_of_an_index_changes_nothing(
    mechanism: WordMechanism, key: ReleaseKey, tmp_path: Path
) -> None:
    # Kills: words that have other numbers, or are spelled as others, in one format or the other.
    # Both are taken for the index of one digest, which the noise depends on.
    for name, content in contents(ALIKE):
        (tmp_path / name).write_bytes(content)
    first = open_index(str(tmp_path), None, parts_read(mechanism))
    again = tmp_path / "again"
    again.mkdir()
    save(str(again), ALIKE.manifest, ALIKE.vocabulary, ALIKE.vectors, ALIKE.codes)
    second = open_index(str(again), None, parts_read(mechanism))
    assert (first.manifest.version, second.manifest.version) == (1, 2)
    given = parameters(mechanism, Fraction(1), out_of_vocabulary="draw")
    texts = documents(LONG + " zebra", "", "wa", "zebra")
    expected, *others = (
        WordPrivatizer(given, index, key).release(texts) for index in (ALIKE, first, second)
    )
    assert [one.rows.equals(expected.rows) for one in others] == [True, True]


def test_another_t_changes_all_the_noise(key: ReleaseKey) -> None:
    # Kills: t left out of the stage's parameters.
    given = parameters(VICKREY, TINY)
    (text,) = release(given, ALIKE, key, LONG)
    (other,) = release(replace(given, mechanism=Vickrey(Fraction(51, 100))), ALIKE, key, LONG)
    assert independent(text, other)
