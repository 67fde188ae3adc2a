"""Documents that share an identifier are refused, wherever in the corpus they are."""

from __future__ import annotations

from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pytest
from apache_beam.runners.portability.fn_api_runner import FnApiRunner

from mechanisms.keystream import ReleaseKey
from transforms.documents import Documents
from transforms.identifiers import Identifiers, RefuseRepeated

KEY = ReleaseKey.derive(bytes(32), "test")


def digests(*parts: Any, key: ReleaseKey = KEY) -> list[tuple[int, bytes]]:
    """What the units of work say, each of which has read one of the `parts`."""
    pairs = []
    for values in parts:
        identifiers = Identifiers("key", key)
        column = pa.table({"key": values})
        texts = pa.array([""] * len(column), pa.large_string())
        identifiers.add(Documents("file", np.arange(len(column)), texts, column))
        pairs += [output.value for output in identifiers.outputs()]
    return pairs


def check(pairs: list[tuple[int, bytes]]) -> None:
    with beam.Pipeline(runner=FnApiRunner()) as pipeline:
        pipeline | beam.Create(pairs) | RefuseRepeated("key")


def test_distinct_identifiers_pass() -> None:
    # Kills: a comparison of types ("1" is not "01"), of part of the digest, or of the first bytes.
    check(digests([f"{i}" for i in range(3000)], ["01", "", " 1", None], pa.array([-1])))


@pytest.mark.parametrize(
    "parts",
    [(["a", "b", "a"],), (["a"], ["b"], ["a"]), ([7], [7]), ([None, None],)],
    ids=["in one part", "in two", "integers", "null"],
)
def test_repeated_identifiers_fail(parts: tuple[Any, ...]) -> None:
    with pytest.raises(Exception, match="the column 'key' repeats values"):
        check(digests(*parts))


def test_digests_are_keyed() -> None:
    # Kills: a plain hash, from which identifiers can be guessed in a shuffle's files, and a key of
    # each release's own, by which a ledger could not compare what is in several.
    stranger = ReleaseKey.derive(bytes([1]) * 32, "release")
    sibling = ReleaseKey.derive(bytes(32), "other")
    assert digests(["a"]) == digests(["a"], key=sibling)
    assert digests(["a"])[0][1] != digests(["a"], key=stranger)[0][1]


def test_identifiers_go_in_buckets_of_their_digests() -> None:
    pairs = digests([str(i) for i in range(2000)])
    assert len({bucket for bucket, _ in pairs}) == len(pairs) == 64
    for bucket, raw in pairs:
        assert (np.frombuffer(raw, "<u8")[::2] >> np.uint64(58) == bucket).all()


def test_without_an_id_column_nothing_is_noted() -> None:
    identifiers = Identifiers(None, KEY)
    texts = pa.array(["x"], pa.large_string())
    identifiers.add(Documents("file", np.arange(1), texts, pa.table({})))
    assert list(identifiers.outputs()) == []
