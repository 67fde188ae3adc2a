"""Users of rows: whose documents make a group, and who adds to the counts."""

from __future__ import annotations

import os
from collections import defaultdict
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from quietcorpus.indexes.tokens.vocabulary import Vocabulary
from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.mechanisms.users.clipped_sum import STEPS, ClippedSum
from quietcorpus.mechanisms.users.cooccurrence import cells_of
from quietcorpus.mechanisms.users.user_vocabulary import UserVocabulary
from quietcorpus.transforms.composed import users as module
from quietcorpus.transforms.reading.documents import Documents
from quietcorpus.transforms.sums import OfRows
from quietcorpus.transforms.users import clipped_sums, user_vocabulary
from quietcorpus.transforms.users.cooccurrence import Cooccurrences
from quietcorpus.transforms.users.shards import unpack
from quietcorpus.transforms.users.user_vocabulary import BoundWords
from quietcorpus.transforms.users.users import NO_BUDGET, BoundedUsers, BoundShare

WORDS = Vocabulary(["alpha", "beta", "delta", "gamma"])
USERS = BoundedUsers("by", "plan", ("least", "most"), tokens=20)
COUNTING = Cooccurrences(
    window=5, most=(100, STEPS), mechanism=ClippedSum(Fraction(1)), users=USERS
)
ROWS = [
    ("anna", "most", "alpha beta " * 9),
    ("anna", "least", ""),
    ("bob", "most", "alpha gamma"),
    ("bob", None, "unknown"),
    ("carl", "most", "alpha delta " * 9),
]


def test_noise_is_bound_to_users_and_their_groups() -> None:
    # Kills: noise that two states of a corpus share under one release id, where they differ in who
    # wrote a row or in a user's group alone: its difference would be the exact difference.
    key, texts = ReleaseKey(os.urandom(32)), pa.array(["alpha beta"] * 3, pa.large_string())
    found = set()
    for by, groups in (
        (["anna", "bob", None], ["most", "most", None]),
        (["anna", "anna", None], ["most", "most", None]),
        (["anna", "bob", "bob"], ["most", "most", None]),
        (["anna", "bob", None], ["most", "least", None]),
        (["bob", "anna", None], ["most", "most", None]),
    ):
        columns = pa.table(
            {"by": pa.array(by), "plan": pa.array(groups), "id": pa.array(["a", "b", "c"])}
        )
        ids = [b"a", b"b", b"c"]
        documents = Documents("", np.arange(3), texts, columns, ids=ids)
        read = module._ReadShares(USERS, "id", lambda: key)
        read.start_bundle()
        held = sum(own[1] for _, own in read.process(documents, WORDS))
        assert held[0] == 3
        found.add((held[:3].tobytes(), held[3:].tobytes()))
    assert len({ids for ids, _ in found}) == 1
    assert len(found) == 5


@pytest.mark.parametrize("size", [1, 5])
def test_every_document_of_a_user_names_a_group(size: int) -> None:
    # Kills: documents without known words that are passed over, so that a user has a larger budget
    # than that of one of them; a user without a budget who adds to the counts.
    key = ReleaseKey(os.urandom(32))
    by, groups, texts = zip(*ROWS, strict=True)
    columns = pa.table({"by": pa.array(by), "plan": pa.array(groups), "id": pa.array(by)})
    ids = [bytes([row]) for row in range(len(ROWS))]
    documents = Documents("", np.arange(5), pa.array(texts, pa.large_string()), columns, ids=ids)
    read = module._ReadShares(USERS, "id", lambda: key)
    read.start_bundle()
    bound = module._BoundCovering(BoundShare(USERS.tokens))
    found: dict[bytes, Any] = defaultdict(bound.create_accumulator)
    for part in documents.parts(size):
        for user, own in read.process(part, WORDS):
            found[user] = bound.add_input(found[user], own)
    shares = {user: bound.extract_output(own) for user, own in found.items()}
    digests = USERS.digests(documents, key)
    named = [shares[digests[row] or b""][0][0] for row in (0, 2, 4)]
    assert named == [0, NO_BUDGET, 1]
    count = clipped_sums._SumShard(COUNTING, lambda: key, OfRows())
    ((number, (sums, held)),) = count.process((0, shares.items()), WORDS)
    assert number == 0
    assert held[0] == len(ROWS)
    cells, counts = unpack(sums)
    shared = np.zeros(cells_of(len(WORDS)), dtype=np.int64)
    shared[cells] = counts
    for row, most in ((0, 100), (4, STEPS)):
        user = digests[row] or b""
        own, added = COUNTING.clipped(user, shares[user][0], len(WORDS), key)
        assert (most - 5) ** 2 < (added**2).sum() <= most**2
        shared[own] -= added
    assert not shared.any()
    with pytest.raises(ValueError, match="no budget"):
        COUNTING.clipped(b"bob", shares[digests[2] or b""][0], len(WORDS), key)


@pytest.mark.parametrize("size", [1, 5])
def test_every_document_names_the_group_of_its_words(size: int) -> None:
    # Kills: documents without words that are passed over: a user with one that has no budget would
    # give words to the vocabulary.
    key, bound = ReleaseKey(os.urandom(32)), BoundWords(6)
    rows = [*ROWS, ("dora", "most", "alpha"), ("dora", None, "")]
    by, groups, texts = zip(*rows, strict=True)
    columns = pa.table({"by": pa.array(by), "plan": pa.array(groups), "id": pa.array(by)})
    ids = [bytes([row]) for row in range(len(rows))]
    documents = Documents(
        "", np.arange(len(rows)), pa.array(texts, pa.large_string()), columns, ids=ids
    )
    read = module._ReadWords(USERS, "id", lambda: key, 6, WORDS.tokenizer)
    read.start_bundle()
    covering = module._BoundCovering(bound)
    found: dict[bytes, Any] = defaultdict(covering.create_accumulator)
    for part in documents.parts(size):
        for user, own in read.process(part):
            found[user] = covering.add_input(found[user], own)
    words = {user: covering.extract_output(own) for user, own in found.items()}
    digests = USERS.digests(documents, key)
    assert [words[digests[row] or b""][0][0] for row in (0, 2, 4, 5)] == [0, -1, 1, -1]
    weighed = user_vocabulary._Weigh(UserVocabulary(6, Fraction(2), Fraction(1, 10**6)), OfRows())
    sums: dict[str, int] = {}
    for _, (own, _) in weighed.process((0, list(words.items()))):
        sums |= own
    assert sums == dict.fromkeys(["alpha", "beta"], 362) | {"alpha": 724, "delta": 362}
