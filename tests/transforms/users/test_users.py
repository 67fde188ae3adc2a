"""Users: one bounded share each, wherever their documents lie, and no name leaves the reader."""

from __future__ import annotations

import itertools
import os
import pickle
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from running import run

from quietcorpus.indexes.tokens.vocabulary import Vocabulary
from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.reading.documents import Corpus, Documents
from quietcorpus.transforms.reading.sources import plan, read
from quietcorpus.transforms.shards import RejectLog
from quietcorpus.transforms.users import users as module
from quietcorpus.transforms.users.users import (
    NO_BUDGET,
    BoundedUsers,
    BoundShare,
    GatherUsers,
    Share,
    Users,
    words_of,
)

TERMS = ["alpha", "beta", "delta", "gamma"]
NAMES = [f"canary-{n:03d}@example.org" for n in range(12)]


def key_of(name: str = "test") -> ReleaseKey:
    return ReleaseKey.derive(os.urandom(32), name, b"")


# A share, however it is put together.

raw_texts = st.lists(st.integers(0, 2**31 - 1), max_size=6).map(
    lambda words: np.array(words, dtype="<i4").tobytes()
)
# Few priorities, so that some are equal.
documents = st.tuples(st.integers(-1, 3), st.tuples(st.integers(0, 5), raw_texts))


def all_at_once(given_documents: Sequence[Any], tokens: int) -> Share:
    """A share by definition: the first words of the documents in order of priority."""
    left = 4 * tokens
    texts = []
    for priority, raw in sorted(text for _, text in given_documents):
        if raw and left:
            texts.append((priority, raw[:left]))
            left -= len(texts[-1][1])
    return min(number for number, _ in given_documents), texts


@settings(deadline=None)
@given(
    given_documents=st.lists(documents, min_size=1, max_size=12),
    tokens=st.integers(1, 12),
    held=st.sampled_from([0, 1, 3, 4096]),
    data=st.data(),
)
def test_a_share_does_not_depend_on_how_it_is_put_together(
    given_documents: list[Any], tokens: int, held: int, data: st.DataObject
) -> None:
    # Any order, any division into bundles, merged in any tree, shortened whenever an engine likes.
    # Kills: a cut before the last merge, documents in the order of arrival, a group of the first or
    # last document, empty documents, a word too many.
    bound = BoundShare(tokens)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_TEXTS_HELD", held)
        shuffled = data.draw(st.permutations(given_documents))
        shares: list[Share] = []
        while shuffled:
            size = data.draw(st.integers(1, len(shuffled)))
            share = bound.create_accumulator()
            for number, text in shuffled[:size]:
                share = bound.add_input(share, (number, [text]))
            shares.append(share)
            shuffled = shuffled[size:]
        while len(shares) > 1:
            count = data.draw(st.integers(2, len(shares)))
            merged = bound.merge_accumulators(shares[:count])
            if data.draw(st.booleans()):
                merged = bound.compact(merged)
            shares = [*shares[count:], merged]
        found = bound.extract_output(shares[0])
    assert found == all_at_once(given_documents, tokens)
    assert sum(len(raw) for _, raw in found[1]) <= 4 * tokens


def test_what_a_share_is_made_of_stays_as_it_was() -> None:
    # Beam may use an element again. Kills: a list of an input that grows or is cut.
    bound = BoundShare(2)
    inputs: list[Share] = [(1, [(7, b"aaaabbbbcccc")]), (0, [(3, b"dddd")])]
    before = pickle.dumps(inputs)
    share = bound.create_accumulator()
    for more in inputs:
        share = bound.add_input(share, more)
    assert bound.extract_output(share) == (0, [(3, b"dddd"), (7, b"aaaa")])
    assert pickle.dumps(inputs) == before


def test_the_words_of_a_share() -> None:
    words = [np.array([5, 2**31 - 1], "<i4"), np.array([0], "<i4")]
    share = 0, [(9, words[0].tobytes()), (2, words[1].tobytes())]
    for found, expected in zip(words_of(share), words, strict=True):
        np.testing.assert_array_equal(found, expected)


# Who is who.


def batch(source: str = "file", **columns: Any) -> Documents:
    table = pa.table(columns)
    texts = pa.array([""] * len(table), pa.large_string())
    return Documents(source, np.arange(len(table)), texts, table)


def test_users_are_told_apart_by_keyed_digests() -> None:
    # Kills: a digest of a part of the name, of the row or the file, of no key; one user of all who
    # have no name.
    users, key = Users("by"), key_of()
    names = ["anna", "anna ", "Anna", "", "bob", None, "anna", "\u00e4"]
    found = users.digests(batch(by=names), key)
    assert [name for name, digest in zip(names, found, strict=True) if digest is None] == ["", None]
    assert all(len(digest) == 16 for digest in found if digest is not None)
    assert found[0] == found[6]
    assert len(set(found)) == len(set(names)) - 1
    moved = users.digests(batch("elsewhere", by=names[::-1], other=names), key)
    assert moved == found[::-1]
    others = users.digests(batch(by=names), key_of())
    assert set(found) & set(others) == {None}


def test_each_document_is_told_apart_by_its_place_or_its_id() -> None:
    # Kills: a digest of the text, by which equal documents are one; of the row alone, or of a
    # place in the batch, by which documents of two files or batches are; of a row's place, where
    # an engine decides on batches.
    key, each = key_of(), Users(None)
    one, other = batch(name=["a", "a", "b"]), batch("other", name=["a", "a", "b"])
    found = each.digests(one, key) + each.digests(other, key)
    assert len(set(found)) == 6
    assert None not in found
    parts = [own for part in one.parts(1) for own in each.digests(part, key)]
    assert parts == found[:3]
    rows = [replace(one, ids=[b"i", b"j", b"k"]), replace(other, ids=[b"k", b"i", b"l"])]
    first, second = (each.digests(own, key) for own in rows)
    assert [first[0], first[2]] == [second[1], second[0]]
    assert len({*first, *second, *found}) == 4 + 6


def test_users_of_other_types_are_compared_as_strings() -> None:
    # Numbers in one place and their digits in another are one user, who is bounded as one.
    users, key = Users("by"), key_of()
    numbers = users.digests(batch(by=pa.array([17, 4, None], pa.int64())), key)
    assert numbers == users.digests(batch(by=["17", "4", None]), key)
    # Kills: a user who is bounded once for each type that files have given to the column.
    wide = [12345678901, 4]
    whole = users.digests(batch(by=pa.array(wide, pa.int64())), key)
    assert users.digests(batch(by=pa.array(map(float, wide), pa.float64())), key) == whole
    raw = pa.array([bytes.fromhex(UUIDS[0].replace("-", ""))], pa.binary(16))
    assert users.digests(batch(by=raw), key) == users.digests(batch(by=UUIDS[1:]), key)
    with pytest.raises(InputError, match=r"^mechanism.user: the column 'by' has floating-point "):
        users.digests(batch(by=[0.5]), key)


SAME = [["1", "1.0", "10e-1", "1.00"], ["1e20", "100000000000000000000"], ["-0.0", "0"]]
UUIDS = ["0123abcd-4567-89ef-cdef-0123456789ab", "0123ABCD-4567-89EF-CDEF-0123456789AB"]
APART = [
    "1.5",
    "1.50",
    "1.",
    ".5",
    "01",
    "1 ",
    "v1.0",
    "1.0.0",
    "1e",
    "nan",
    "1e9999",
    "-",
    "\u0661.0",
]


@pytest.mark.parametrize("form", ["csv", "json lines", "numbers in json", "strings"])
def test_a_user_is_one_with_and_without_a_point(form: str, tmp_path: Path) -> None:
    # pandas writes 1.0 for 1 on a day on which another user is missing, and some databases write
    # UUIDs in capitals. Kills: two users, each with a share of their own, for one person, in a
    # format that has no types; other names made one.
    texts = form != "numbers in json"
    same, apart = [*SAME, *[UUIDS] * texts], APART * texts
    names = [*itertools.chain(*same), *apart]
    lines = {
        "csv": ["text,by", *(f"a,{name}" for name in names)],
        "json lines": [f'{{"text": "a", "by": "{name}"}}' for name in names],
        "numbers in json": [f'{{"text": "a", "by": {name}}}' for name in names],
    }
    if form in lines:
        path = tmp_path / f"a.{'csv' if form == 'csv' else 'jsonl'}"
        path.write_text("\n".join(lines[form]) + "\n", "utf-8")
        corpus = Corpus(str(path), also=(("mechanism.user", "by"),))
        (split,) = plan(corpus).splits
        (documents,) = read(split, corpus)
    else:
        documents = batch(by=names)
    found = iter(Users("by").digests(documents, key_of()))
    groups = [{next(found) for _ in own} for own in same]
    assert [len(own) for own in groups] == [1] * len(same)
    assert len(set().union(*groups, found)) == len(same) + len(apart)


def test_groups_by_name() -> None:
    # Kills: a group that is not listed, or none at all, with a listed one's budget.
    users = Users("by", "plan", ("least", "middle", "most"))
    given_groups = ["most", "least", None, "other", "", "Least", "middle"]
    found = users.numbers(batch(by=["x"] * 7, plan=given_groups))
    assert found == [2, 0, NO_BUDGET, NO_BUDGET, NO_BUDGET, NO_BUDGET, 1]
    assert Users("by").numbers(batch(by=["x", None])) == [0, 0]
    assert NO_BUDGET < 0


def test_groups_by_level() -> None:
    # Kills: the nearest level, one above the number, a budget for what is no number, too little, or
    # a number to Python alone.
    users = Users("by", "plan", ("a", "b"), (Decimal("0.1"), Decimal(2)))
    enough = {"0.1": 0, "1.9": 0, "2": 1, "1e999": 1, "+2.": 1}
    none = [
        "0.09999999999999999999",
        "-3",
        "nan",
        "x",
        "",
        None,
        "inf",
        "Infinity",
        "1_0",
        "\u0663",
    ]
    none += ["\u0663", " 2", "2\n", "1e99999", "9" * 500]
    plans = [*enough, *none]
    found = users.numbers(batch(by=["x"] * len(plans), plan=plans))
    assert found == [*enough.values(), *[NO_BUDGET] * len(none)]
    floats = pa.array([0.1, 2.0, 1.999, None])
    assert users.numbers(batch(by=["x"] * 4, plan=floats)) == [0, 1, 0, NO_BUDGET]
    assert users.numbers(batch(by=["x"] * 3, plan=pa.array([2, 1, 0]))) == [1, 0, NO_BUDGET]


# A corpus.

Row = tuple[str | None, str | None, str]
"""A user, a group and a text."""


def rows_of(generator: np.random.Generator) -> list[Row]:
    """Users of 1 to 31 documents; the first three are of several groups, or have none as well."""
    rows: list[Row] = []
    for n, name in enumerate(NAMES):
        for _ in range(1 + n * n // 4):
            words = generator.choice([*TERMS, "unknown"], generator.integers(0, 9))
            rows.append((name, "least" if n == 3 else "most", " ".join(words)))
    rows += [(NAMES[0], "least", "alpha"), (NAMES[1], "other", "beta beta"), (NAMES[2], None, "")]
    rows += [
        (None, "most", "gamma gamma"),
        ("", "most", "delta"),
        ("wordless", "most", "unknown"),
        ("empty", "least", ""),
    ]
    return [rows[i] for i in generator.permutation(len(rows))]


def write(folder: Path, rows: Sequence[Row], files: int, row_group_size: int) -> Corpus:
    """The rows in so many files, each after the other."""
    folder.mkdir()
    for number in range(files):
        part = rows[len(rows) * number // files : len(rows) * (number + 1) // files]
        columns = dict(zip(("by", "plan", "text"), map(list, zip(*part, strict=True)), strict=True))
        table = pa.table({name: pa.array(value, pa.string()) for name, value in columns.items()})
        pq.write_table(table, folder / f"{number}.parquet", row_group_size=row_group_size)
    also = (("mechanism.user", "by"), ("mechanism.budgets.column", "plan"))
    return Corpus(str(folder / "*.parquet"), also=also)


USERS = BoundedUsers("by", "plan", ("least", "most"), tokens=20)


def gathered(
    corpus: Corpus, key: ReleaseKey, users: Users = USERS, **runner: Any
) -> dict[str, list[Any]]:
    splits = plan(corpus).splits

    def build(pipeline: beam.Pipeline) -> dict[str, beam.PCollection]:
        vocabulary = beam.pvalue.AsSingleton(pipeline | "v" >> beam.Create([Vocabulary(TERMS)]))
        gather = GatherUsers(corpus, users, vocabulary, lambda: key, RejectLog())
        outputs: dict[str, beam.PCollection] = pipeline | beam.Create(splits) | gather
        return outputs

    return run(build, **runner)


def shares_of(outputs: dict[str, list[Any]]) -> dict[bytes, Share]:
    shares = dict(outputs["shares"])
    assert len(shares) == len(outputs["shares"])
    return shares


def known(text: str) -> bytes:
    return np.array([TERMS.index(w) for w in text.split() if w in TERMS], "<i4").tobytes()


def expected_users(rows: Sequence[Row], key: ReleaseKey) -> dict[bytes, tuple[int, list[bytes]]]:
    """By definition: the group and all known words of every user who has a part."""
    texts: dict[str, list[bytes]] = defaultdict(list)
    groups: dict[str, set[str | None]] = defaultdict(set)
    for name, group, text in rows:
        if name:
            groups[name].add(group)
            texts[name] += [raw] if (raw := known(text)) else []
    found = {}
    for name, own in texts.items():
        if own and groups[name] <= set(USERS.groups):
            (digest,) = USERS.digests(batch(by=[name]), key)
            assert digest is not None
            found[digest] = min(USERS.groups.index(str(group)) for group in groups[name]), own
    return found


@pytest.mark.parametrize("layout", [(1, 1000), (1, 7), (3, 1000), (4, 5)], ids=str)
def test_every_user_has_one_bounded_share(layout: tuple[int, int], tmp_path: Path) -> None:
    # However the corpus is divided. Kills: a share a file or row group (a user with several is
    # protected less), a user by the first group met, one with an unlisted group, documents without
    # a user as a user's, words cut by document alone.
    key = key_of()
    rows = rows_of(np.random.default_rng())
    outputs = gathered(write(tmp_path / "corpus", rows, *layout), key)
    shares, expected = shares_of(outputs), expected_users(rows, key)
    assert shares.keys() == expected.keys()
    mixed, *others = USERS.digests(batch(by=[*NAMES[:3], "wordless", "empty"]), key)
    assert mixed is not None
    assert shares[mixed][0] == 0
    assert not shares.keys() & set(others)
    for user, (number, texts) in shares.items():
        own_number, own = expected[user]
        assert number == own_number
        total = sum(map(len, own))
        assert sum(len(raw) for _, raw in texts) == min(4 * USERS.tokens, total)
        priorities = [priority for priority, _ in texts]
        assert priorities == sorted(priorities)
        # Whole documents of the user's own but for the last, each once.
        whole = Counter(raw for _, raw in texts[:-1])
        assert whole <= Counter(own)
        last = texts[-1][1]
        assert any(raw.startswith(last) for raw in (Counter(own) - whole))
        if total <= 4 * USERS.tokens:
            assert Counter(raw for _, raw in texts) == Counter(own)
    assert sum(tally.documents for tally in outputs["tallies"]) == len(rows)


def test_shares_do_not_depend_on_how_the_corpus_is_divided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # In files and row groups, in any order, on an engine that runs a bundle again. Kills: a
    # priority by place, batch or split; a share that is counted twice.
    key, rows = key_of(), rows_of(np.random.default_rng())
    whole = shares_of(gathered(write(tmp_path / "whole", rows, 1, 10_000), key))
    for name, some, layout, runner in [
        ("repeated", rows, (1, 10_000), {"bundle_repeat": 1}),
        ("groups", rows, (1, 7), {}),
        ("files", rows[::-1], (4, 3), {}),
    ]:
        corpus = write(tmp_path / name, some, *layout)
        assert shares_of(gathered(corpus, key, **runner)) == whole
    # A reader passes on what it holds after every batch. Kills: users whose parts are kept apart,
    # a part that is passed on twice, or not at the end.
    monkeypatch.setattr(module, "_BYTES_HELD", 0)
    corpus = write(tmp_path / "parts", rows, 1, 7)
    assert shares_of(gathered(corpus, key)) == whole


def test_which_documents_count_is_drawn_by_the_key(tmp_path: Path) -> None:
    # For each user apart. Kills: the first, by place or by alphabet; an order that others share.
    texts = [" ".join(TERMS[n // 4**i % 4] for i in range(5)) for n in range(400)]
    rows: list[Row] = [(name, "most", text) for name in ("anna", "bob") for text in texts]
    corpus = write(tmp_path / "corpus", rows, 1, 1000)
    chosen = []
    for _ in range(3):
        for _, own in shares_of(gathered(corpus, key_of())).values():
            assert [len(raw) for _, raw in own] == [20] * 4
            chosen.append(frozenset(raw for _, raw in own))
    first = frozenset(map(known, texts[:4])), frozenset(sorted(map(known, texts))[:4])
    # Four of 400 in two orders are the same with a chance of 1e-9.
    assert len({*chosen, *first}) == 8


def test_other_users_change_nothing(tmp_path: Path) -> None:
    # The corpora differ by one user, in whose absence all rows move up: what is left is equal to
    # the last bit. Kills: a choice of documents by row, by which one user changes what others give.
    key = key_of()
    rows = rows_of(np.random.default_rng())
    without = [row for row in rows if row[0] != NAMES[-1]]
    both, one = (
        shares_of(gathered(write(tmp_path / name, some, 2, 9), key))
        for name, some in (("both", rows), ("one", without))
    )
    (left,) = USERS.digests(batch(by=[NAMES[-1]]), key)
    assert left is not None
    assert both.pop(left)
    assert both == one
    # Some of them are cut, so that there was something to choose.
    assert max(sum(len(raw) for _, raw in texts) for _, texts in one.values()) == 4 * USERS.tokens


def test_no_name_leaves_the_reader(tmp_path: Path) -> None:
    # Nor a group's name, nor a word: digests and numbers. Kills: a name kept for later, an error.
    rows = rows_of(np.random.default_rng())
    outputs = gathered(write(tmp_path / "corpus", rows, 2, 10), key_of())
    assert outputs.keys() == {"shares", "tallies", "identifiers"}
    assert outputs["shares"]
    everything = pickle.dumps(outputs)
    for secret in (b"canary", b"example.org", b"wordless", b"least", b"alpha", b"unknown"):
        assert secret not in everything
    assert pickle.dumps(NAMES).count(b"canary") == len(NAMES)  # what the search would find


def test_without_groups_every_user_is_of_one(tmp_path: Path) -> None:
    key, rows = key_of(), rows_of(np.random.default_rng())
    corpus = write(tmp_path / "corpus", rows, 1, 1000)
    shares = shares_of(gathered(corpus, key, BoundedUsers("by", tokens=20)))
    named = {name for name, _, text in rows if name and known(text)}
    assert shares.keys() == set(USERS.digests(batch(by=sorted(named)), key))
    assert {number for number, _ in shares.values()} == {0}
