"""Noise that a row's id addresses: what it is a function of, for every kind of row.

Whether two outputs share noise is seen in their fresh ids, which are blocks of the same address.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hashed_sentences import CANDIDATES, Hashed, parameters, some_texts

from quietcorpus.indexes.tokens.vocabulary import Vocabulary
from quietcorpus.mechanisms.bags.bag_of_words import Accounting
from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.mechanisms.words.registry import word_mechanism
from quietcorpus.transforms.artefacts.folders import IndexSource
from quietcorpus.transforms.codebook import Codebook
from quietcorpus.transforms.composed.fields import canonical
from quietcorpus.transforms.privatizers.bags import BagOfWordsParameters, BagPrivatizer
from quietcorpus.transforms.privatizers.rows import Privatizer
from quietcorpus.transforms.privatizers.sentences import SentencePrivatizer
from quietcorpus.transforms.privatizers.words import WordsParameters
from quietcorpus.transforms.reading.documents import Documents

VOCABULARY = Vocabulary(sorted({"the", "report", "fires", "police", "of", "a", "said", "is"}))
KINDS = ("bags", "dense bags", "madlib", "brr", "sentences")
EACH_KIND = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture
def privatizer_of(word_index: Path, key: ReleaseKey) -> Callable[[str], Privatizer]:
    """Makes the privatizer of a kind, under one key."""

    def bags(epsilon: int) -> Privatizer:
        bins = np.arange(8, dtype=np.int32) % 3  # so that counts are spread over terms
        codebook = Codebook(VOCABULARY, bins, 3, np.arange(8))
        given = BagOfWordsParameters(10, Fraction(epsilon), Accounting.TIGHT)
        return BagPrivatizer(given, codebook, key)

    def words(mechanism: str) -> Privatizer:
        source = IndexSource.resolve("mechanism.index", str(word_index))
        epsilon = Fraction(5) if mechanism == "madlib" else Fraction(1, 2)
        given = WordsParameters(word_mechanism(mechanism), epsilon, "document", "draw", source)
        return given.privatizer(key)

    def make(kind: str) -> Privatizer:
        match kind:
            case "bags":
                return bags(50)
            case "dense bags":
                return bags(1)
            case "sentences":
                return SentencePrivatizer(parameters("similarity"), CANDIDATES, Hashed(), key)
        return words(kind)

    return make


def released(privatizer: Privatizer, rows: list[tuple[Any, str]]) -> list[dict[str, Any]]:
    """Return the rows that are released for a batch of (id, text)."""
    ids = [canonical(one) for one, _ in rows]
    texts = pa.array([text for _, text in rows], pa.large_string())
    batch = Documents("", np.arange(len(rows)), texts, pa.table({}), ids=ids)
    found: list[dict[str, Any]] = privatizer.release(batch).rows.to_pylist()
    return found


@EACH_KIND
def test_batches_leave_no_trace(
    kind: str, privatizer_of: Callable[[str], Privatizer], lee_texts: list[str]
) -> None:
    # Kills: an output that depends on a row's place in its batch, or on its neighbours: the engine
    # decides on those, and decides otherwise in a retry. Counts are spread over terms by a batch's
    # common words elsewhere.
    privatizer = privatizer_of(kind)
    texts = [*(some_texts(10) if kind == "sentences" else lee_texts[:40]), "", "zqx 4711", ""]
    rows = [(f"n{number}", text) for number, text in enumerate(texts)]
    whole = released(privatizer, rows)
    for size in (1, 7):
        parts = [rows[start : start + size] for start in range(0, len(rows), size)]
        assert [row for part in parts for row in released(privatizer, part)] == whole
    assert released(privatizer, rows[::-1]) == whole[::-1]


@EACH_KIND
def test_noise_is_of_id_and_input(kind: str, privatizer_of: Callable[[str], Privatizer]) -> None:
    # Kills: an address without the id, by which equal texts are seen to be equal, or without the
    # text, by which two texts under one id share noise; and ids that run into the text after them.
    privatizer = privatizer_of(kind)
    one, other = "the police said. the report is", "the fires. a report of the police"
    pairs = [(given, text) for given in (7, "7", b"7", "", "77") for text in (one, other)]
    found = [released(privatizer, [pair])[0]["id"] for pair in pairs]
    again = [released(privatizer, [pair])[0]["id"] for pair in pairs]
    assert found == again
    assert len(set(found)) == len(pairs)


def test_ids_and_terms_do_not_run_together(privatizer_of: Callable[[str], Privatizer]) -> None:
    # Kills: an address of an id and terms without the id's length, where the id can be chosen.
    privatizer = privatizer_of("bags")
    term = int(VOCABULARY.terms.to_pylist().index("of")).to_bytes(4, "little")
    # b"x" + "of of" and b"x" + term + "of" have the same bytes, one after the other.
    pairs = [(b"x", "of of"), (b"x" + term, "of"), (b"x" + term * 2, "")]
    found = [released(privatizer, [pair])[0]["id"] for pair in pairs]
    assert len(set(found)) == 3


def test_canonical_ids_are_told_apart() -> None:
    # Kills: 7 and "7" under one address, and numbers that differ by their class alone.
    ids = [7, "7", b"7", "i7", -7, 2**63 - 1, 7 + 2**40, 7 + 2**32, "", b"", "é", "e\u0301"]
    assert len({canonical(one) for one in ids}) == len(ids)
    assert canonical(7) == canonical(np.int32(7)) == canonical(np.int64(7))


def test_a_file_shares_no_address_with_ids(privatizer_of: Callable[[str], Privatizer]) -> None:
    # Kills: an id that a source and a row number spell out.
    privatizer = privatizer_of("bags")
    texts = pa.array(["of"], pa.large_string())
    places = [(name, row) for name in ("", "ids", "s7") for row in (0, 7)]
    filed = [
        privatizer.release(Documents(name, np.array([row]), texts, pa.table({}))).rows["id"][0]
        for name, row in places
    ]
    own = [released(privatizer, [(one, "of")])[0]["id"] for one in (7, "7", "", b"")]
    for a, b in itertools.product(filed, own):
        assert a.as_py() != b
