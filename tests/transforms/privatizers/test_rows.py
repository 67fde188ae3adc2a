"""Addresses of documents in the keystream, and the privatizers that workers keep."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.transforms.privatizers.rows import PreparedPrivatizer, document_addresses
from quietcorpus.transforms.reading.documents import Documents

KEY = ReleaseKey(bytes(32))
STREAM = KEY.stage("documents", 1)


def address(identifier: bytes | None, terms: list[int], row: int = 0) -> tuple[int, ...]:
    ids = None if identifier is None else [identifier]
    texts = pa.array([""], pa.large_string())
    documents = Documents("file", np.array([row]), texts, pa.table({"a": [1]}), ids=ids)
    words = np.array(terms, np.int32)
    found = document_addresses(STREAM, documents, np.array([0, len(terms)]), words)
    return tuple(found[0].tolist())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((b"a\1\0\0\0", [2]), (b"a", [1, 2])),
        ((b"", [1]), (b"\1\0\0\0", [])),
        ((b"a", [1, 2]), (b"a", [2, 1])),
        ((b"a", [1]), (b"b", [1])),
        ((None, [1], 0), (None, [1], 1)),
        ((None, [1]), (b"", [1])),
    ],
)
def test_different_documents_have_different_addresses(one: Any, other: Any) -> None:
    # Kills: an id that runs into the terms after it: ids can be chosen, and two rows would share
    # their noise; equal terms of two rows, or of a row and a file, that share it.
    assert address(*one) != address(*other)
    assert address(*one) == address(*one)


@dataclass
class Made:
    """Parameters that tell which earlier output they were given."""

    given: list[Any] = field(default_factory=list)
    fields = ()

    def privatizer(self, _: ReleaseKey, side: Any) -> Any:
        self.given.append(side)
        return side


@dataclass
class Side:
    digest: str


def test_a_privatizer_is_that_of_its_codebook() -> None:
    # Kills: a privatizer that a worker keeps for rows of another vocabulary or map: its stage of
    # noise would name another codebook than the one that its output follows.
    prepared, one, other = PreparedPrivatizer(made := Made()), Side("one"), Side("other")
    for side in (one, Side("one"), other, one):
        assert prepared.of(KEY, side) == side  # type: ignore[comparison-overlap]
    assert made.given == [one, other, one]
