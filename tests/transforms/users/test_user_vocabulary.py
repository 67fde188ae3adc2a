"""Words selected from what users write: each user has one bounded say, and none has the last."""

from __future__ import annotations

import os
import pickle
from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
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

from quietcorpus.indexes.tokens.tokenizers import UNICODE_WORDS
from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.mechanisms.users.user_vocabulary import UserVocabulary
from quietcorpus.transforms.errors import StageError
from quietcorpus.transforms.reading.documents import Corpus, Documents
from quietcorpus.transforms.reading.sources import plan
from quietcorpus.transforms.sums import BUCKETS, AddSums, OfParts
from quietcorpus.transforms.users import user_vocabulary as module
from quietcorpus.transforms.users.user_vocabulary import (
    BoundWords,
    UserVocabularyOfSplits,
    UserWords,
)
from quietcorpus.transforms.users.users import NO_BUDGET, BoundedUsers

COMMON = ["alpha", "beta", "delta", "gamma"]
LETTERS = "abcdefghijklmnopqrstuvwxyz"
SELECTION = UserVocabulary(6, Fraction(20), Fraction(1, 10**9))
USERS = BoundedUsers("by", "plan", ("least", "most"), tokens=1000)

Row = tuple[str | None, str | None, str]
"""A user, a group and a text."""
Said = tuple[int, dict[str, int]]


def key_of() -> ReleaseKey:
    return ReleaseKey.derive(os.urandom(32), "test", b"")


def word(number: int, prefix: str = "z") -> str:
    """A word of a number's own."""
    return prefix + LETTERS[number // 676 % 26] + LETTERS[number // 26 % 26] + LETTERS[number % 26]


def write(folder: Path, rows: Sequence[Row], files: int = 1, row_group_size: int = 1000) -> Corpus:
    """The rows in so many files, each after the other."""
    folder.mkdir()
    for number in range(files):
        part = rows[len(rows) * number // files : len(rows) * (number + 1) // files]
        columns = dict(zip(("by", "plan", "text"), map(list, zip(*part, strict=True)), strict=True))
        table = pa.table({name: pa.array(value, pa.string()) for name, value in columns.items()})
        pq.write_table(table, folder / f"{number}.parquet", row_group_size=row_group_size)
    also = (("mechanism.user", "by"), ("mechanism.budgets.column", "plan"))
    return Corpus(str(folder / "*.parquet"), also=also)


def selected(
    corpus: Corpus, key: ReleaseKey, selection: UserVocabulary = SELECTION, **runner: Any
) -> list[Any]:
    """Return the transform's output."""
    splits = plan(corpus).splits

    def build(pipeline: beam.Pipeline) -> dict[str, beam.PCollection]:
        select = UserVocabularyOfSplits(corpus, USERS, selection, lambda: key, 64, UNICODE_WORDS)
        return {"found": (pipeline | beam.Create(splits) | select)["vocabulary"]}

    return run(build, **runner)["found"]


def weights_of(
    corpus: Corpus, key: ReleaseKey, selection: UserVocabulary = SELECTION, **runner: Any
) -> dict[str, int]:
    """The exact weights, before noise and threshold."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "Threshold", lambda *_: beam.CombinePerKey(AddSums(OfParts(64))))
        buckets = dict(selected(corpus, key, selection, **runner))
    assert sorted(buckets) == list(range(BUCKETS))
    found: dict[str, int] = {}
    for sums, shards in buckets.values():
        assert sorted(shards) == list(range(64))
        assert not sums.keys() & found.keys()
        found |= sums
    return found


def weights_by_definition(
    rows: Sequence[Row], selection: UserVocabulary = SELECTION
) -> Mapping[str, int]:
    """For users who have no more words than count."""
    words: dict[str, set[str]] = defaultdict(set)
    groups: dict[str, set[str | None]] = defaultdict(set)
    for name, group, text in rows:
        if name:
            words[name].update(text.split())
            groups[name].add(group)
    total: dict[str, int] = defaultdict(int)
    for name, own in words.items():
        assert len(own) <= selection.words
        if groups[name] <= set(USERS.groups):
            for each in own:
                total[each] += selection.weight(len(own))
    return total


# A user's say, however it is put together.

# Few priorities, so that some are equal; a word has one, as it does for a user.
said = st.tuples(st.integers(-1, 3), st.sets(st.integers(0, 40), max_size=15))


@settings(deadline=None)
@given(
    parts=st.lists(said, min_size=1, max_size=8),
    words=st.integers(1, 12),
    data=st.data(),
)
def test_a_say_does_not_depend_on_how_it_is_put_together(
    parts: list[tuple[int, set[int]]], words: int, data: st.DataObject
) -> None:
    # Any order, any division, merged in any tree, shortened whenever an engine likes. Kills: words
    # in the order of arrival or of the alphabet, a word too many, a word that counts twice, the
    # group of the first or the last document.
    priority = {n: n * 7 % 5 for n in range(41)}
    bound = BoundWords(words)
    accumulators: list[Said] = []
    inputs: list[Said] = [
        (number, {word(n): priority[n] for n in own})
        for number, own in data.draw(st.permutations(parts))
    ]
    before = pickle.dumps(inputs)
    for more in inputs:
        if accumulators and data.draw(st.booleans()):
            accumulators[-1] = bound.add_input(accumulators[-1], more)
        else:
            accumulators.append(bound.add_input(bound.create_accumulator(), more))
        if data.draw(st.booleans()):
            accumulators[-1] = bound.compact(accumulators[-1])
    while len(accumulators) > 1:
        count = data.draw(st.integers(2, len(accumulators)))
        accumulators = [
            *accumulators[count:],
            bound.merge_accumulators(accumulators[:count]),
        ]
    found = bound.extract_output(accumulators[0])
    everything = {word(n): priority[n] for _, own in parts for n in own}
    first = sorted((rank, each) for each, rank in everything.items())[:words]
    assert found == (min(number for number, _ in parts), {each: rank for rank, each in first})
    assert pickle.dumps(inputs) == before


def test_a_user_whom_the_engine_doubles_is_refused() -> None:
    # The weights would count double, at a noise for once. Kills: a sum of whatever comes.
    user = os.urandom(16), (0, {"alpha": 1, "beta": 2})
    with pytest.raises(StageError, match="doubled a user"):
        list(module._Weigh(SELECTION, OfParts(8)).process((7, [None, user, user])))


def test_documents_without_words_name_groups() -> None:
    # Kills: documents without words that are passed over: a user with one that names no group, or
    # a lesser one, would have the weight of the group of the others.
    rows: list[Row] = [
        ("anna", "most", "alpha"),
        ("anna", None, ""),
        ("bob", "least", " "),
        ("bob", "most", "beta"),
        ("carl", "most", "gamma"),
    ]
    by, groups, texts = zip(*rows, strict=True)
    columns = pa.table({"by": pa.array(by), "plan": pa.array(groups)})
    documents = Documents("file", np.arange(5), pa.array(texts, pa.large_string()), columns)
    for size in (1, 5):
        found = UserWords(USERS, BoundWords(6), key_of(), UNICODE_WORDS)
        for part in documents.parts(size):
            found.add(part)
        said = {next(iter(words)): group for _, (group, words) in found.taken()}
        assert said == {"alpha": NO_BUDGET, "beta": 0, "gamma": 1}


# Weights.


def mixed_rows() -> list[Row]:
    rows: list[Row] = [
        ("one", "most", "alpha"),
        ("two", "most", "alpha beta"),
        ("two", "most", "beta alpha beta"),
        ("six", "least", "alpha beta gamma"),
        ("six", "most", "delta delta zebra"),
        ("six", "most", "quagga"),
        ("unlisted", "other", "alpha okapi"),
        *((f"partly{n}", "most", "alpha") for n in range(20)),
        *((f"partly{n}", None, "beta") for n in range(20)),
        (None, "most", "alpha gnu"),
        ("", "most", "alpha gnu"),
        ("silent", "most", ""),
        ("numbers", "most", ""),
    ]
    return [rows[i] for i in np.random.default_rng().permutation(len(rows))]


@pytest.mark.slow
@pytest.mark.parametrize("held", [0, 1 << 20])
@pytest.mark.parametrize("layout", [(1, 1000), (1, 2), (3, 2)], ids=str)
def test_a_user_gives_each_word_one_weight(
    layout: tuple[int, int], held: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Wherever the documents lie, and however much a reader holds. Kills: a weight a document, a
    # file or a row group, weights of a part of the user's words (which pass the norm together), a
    # weight for who has no budget, for documents without a user, or of no user's group.
    monkeypatch.setattr(module, "_WORDS_HELD", held)
    rows = mixed_rows()
    corpus = write(tmp_path / "corpus", rows, *layout)
    expected = weights_by_definition(rows)
    assert expected["alpha"] == sum(map(SELECTION.weight, (1, 2, 6)))
    assert not {"okapi", "gnu"} & expected.keys()
    key = key_of()
    assert weights_of(corpus, key) == expected
    assert weights_of(corpus, key, bundle_repeat=1) == expected


def test_a_user_of_many_words_gives_to_some(tmp_path: Path) -> None:
    # Which ones the key draws. Kills: words in alphabetical order, or in that of the text.
    rows: list[Row] = [("anna", "most", " ".join(word(n) for n in range(500)))]
    corpus = write(tmp_path / "corpus", rows)
    draws = [weights_of(corpus, key_of()) for _ in range(3)]
    for found in draws:
        assert list(found.values()) == [SELECTION.weight(6)] * 6
    firsts = {word(n) for n in range(6)}
    # Two such sets are equal with a chance of 5e-14.
    assert len({frozenset(s) for s in (*draws, firsts)}) == 4


def test_what_a_user_gives_does_not_depend_on_others(tmp_path: Path) -> None:
    # The weights of two corpora that differ by one user differ by that user's own. All rows move
    # up. Kills: a choice of words by their place, by their frequency, or by a shared draw.
    generator, key = np.random.default_rng(), key_of()
    rows: list[Row] = [
        (f"user{n % 9}", "most", " ".join(map(word, generator.integers(0, 60, 12).tolist())))
        for n in range(90)
    ]
    both = weights_of(write(tmp_path / "both", rows, 2, 7), key)
    others = [row for row in rows if row[0] != "user0"]
    without = weights_of(write(tmp_path / "without", others, 1, 50), key)
    alone = weights_of(write(tmp_path / "alone", [r for r in rows if r[0] == "user0"]), key)
    assert len(alone) == 6
    for each in {*both, *without, *alone}:
        assert both.get(each, 0) == without.get(each, 0) + alone.get(each, 0)


# The vocabulary.


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """400 users of four common words, one of their own; and three who say one thing often."""
    rows: list[Row] = []
    for n in range(400):
        rows += [
            (f"user{n}", "most", " ".join(COMMON[:2])),
            (f"user{n}", "most", f"gamma delta {word(n)}"),
        ]
    rows += [("loud", "most", "loudly " * 50)] * 3000
    rows += [(f"unlisted{n}", "none", "unlisted") for n in range(400)]
    rows += [(None, "most", "nameless")] * 400
    rows = [rows[i] for i in np.random.default_rng().permutation(len(rows))]
    return write(tmp_path_factory.mktemp("crowd") / "corpus", rows, 2, 500)


def test_words_of_many_users_are_selected_and_of_one_never(crowd: Corpus) -> None:
    # One user's words are released with a chance of 5e-10 a user, 2e-7 in all, and the common ones
    # are at 55 thresholds. Kills: counts of documents, a threshold that is not there, a say for who
    # has no budget.
    (vocabulary,) = selected(crowd, key_of())
    assert vocabulary.terms.to_pylist() == COMMON


@pytest.mark.slow
def test_a_retry_selects_the_same(crowd: Corpus, tmp_path: Path) -> None:
    # At a budget at which some words are selected and some are not. Kills: noise that is drawn
    # anew, by bundle or by the number of a batch.
    close = UserVocabulary(6, Fraction(1, 2), Fraction(1, 10**3))
    generator, key = np.random.default_rng(), key_of()
    least = -(-close.threshold // close.weight(1))
    rows: list[Row] = []
    for n in range(150):  # around the threshold
        writers = generator.integers(least - least // 3, least + least // 3)
        rows += [(f"user{n}-{i}", "most", word(n)) for i in range(writers)]
    corpora = write(tmp_path / "one", rows), write(tmp_path / "other", rows[::-1], 3, 100)
    one, repeated, other, another = (
        next(iter(selected(corpus, k, close, **runner))).terms.to_pylist()
        for corpus, k, runner in [
            (corpora[0], key, {}),
            (corpora[0], key, {"bundle_repeat": 1}),
            (corpora[1], key, {}),
            (corpora[1], key_of(), {}),
        ]
    )
    assert 0 < len(one) < 150
    assert one == repeated == other
    assert one != another


def test_no_name_is_in_what_is_passed_on(tmp_path: Path) -> None:
    # Between the stages, where an engine writes to disk. Kills: a user by name.
    rows: list[Row] = [(f"canary{n}", "least", "alpha beta") for n in range(30)]
    corpus = write(tmp_path / "corpus", rows)
    key = key_of()
    splits = plan(corpus).splits
    passed = [
        list(module._ReadWords(corpus, USERS, 10, lambda: key, UNICODE_WORDS).process(s))
        for s in splits
    ]
    assert sum(map(len, passed)) == 30 + len(splits)  # each says that it was read
    content = pickle.dumps(passed)
    assert b"canary" not in content
    assert b"least" not in content


def test_a_user_of_endless_words_is_cut_on_the_way() -> None:
    # Kills: all words of one user in memory, and in the engine's shuffle, until the end.
    bound = BoundWords(5)
    share = bound.create_accumulator()
    drawn = np.random.default_rng().permutation(10_000)
    for start in range(0, 10_000, 10):
        more = {f"w{n}": int(n) for n in drawn[start : start + 10]}
        share = bound.add_input(share, (0, more))
        assert len(share[1]) <= 20
    assert bound.extract_output(share) == (0, {f"w{n}": n for n in range(5)})
