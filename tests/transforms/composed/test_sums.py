"""Sums over rows: their noise is bound to each document, whatever batch it comes in."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.transforms.composed.sums import coverage, coverages
from quietcorpus.transforms.reading.documents import Documents

KEY = ReleaseKey(bytes(32))
TEXTS = ["alpha", "", "beta é", "gamma", "delta delta"]


def batch(texts: Sequence[str], ids: Sequence[bytes]) -> Documents:
    table = pa.table({"id": pa.array(ids, pa.binary())})
    return Documents("", np.arange(len(ids)), pa.array(texts, pa.large_string()), table, ids=ids)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_the_parts_of_a_batch_hold_their_own_documents(size: int) -> None:
    # Kills: digests of the texts at a batch's beginning for those of a part, which is a slice of
    # the same buffers: two states of a corpus that differ in later texts would share noise.
    ids = [b"s%d" % number for number in range(len(TEXTS))]
    whole = batch(TEXTS, ids)
    parts = [coverage(part, "id", KEY) for part in whole.parts(size)]
    starts = range(0, len(TEXTS), size)
    for held, a in zip(parts, starts, strict=True):
        alone = batch(TEXTS[a : a + size], ids[a : a + size])
        np.testing.assert_array_equal(held, coverage(alone, "id", KEY))
    np.testing.assert_array_equal(sum(parts), coverage(whole, "id", KEY))


def test_what_a_sum_reads_of_a_document_does_not_run_together() -> None:
    # Kills: an id without its length, by which two states of a corpus have one digest: ids can be
    # chosen. What a sum reads beside the text has one length for all documents of a sum.
    states = [
        (ids, texts)
        for ids in ([b"sa", b"sbx"], [b"sax", b"sb"])
        for texts in (["xy", "y"], ["y", "xy"])
    ]
    found = []
    for ids, texts in states:
        own = coverages(batch(texts, ids), "id", KEY, [b"", b""])
        found.append(own[:, 3:].sum(axis=0, dtype=np.uint64).tobytes())
    for one, other in itertools.combinations(range(len(states)), 2):
        assert found[one] != found[other]
