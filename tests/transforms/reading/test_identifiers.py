"""Documents that share an identifier are refused, wherever in the corpus they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pytest
from apache_beam.runners.portability.fn_api_runner import FnApiRunner

from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.transforms.reading.documents import Documents
from quietcorpus.transforms.reading.identifiers import Identifiers, RefuseRepeated, kept

KEY = ReleaseKey.derive(bytes(32), "test", b"")


def digests(
    *parts: Any, key: ReleaseKey = KEY, column: str = "key"
) -> list[tuple[int, tuple[int, bytes]]]:
    """Return the digests of the units of work, each of which has read one of the `parts`."""
    pairs = []
    for number, values in enumerate(parts):
        identifiers = Identifiers(column, key, number)
        table = pa.table({column: values})
        texts = pa.array([""] * len(table), pa.large_string())
        identifiers.add(Documents("file", np.arange(len(table)), texts, table))
        pairs += [output.value for output in identifiers.outputs()]
    return pairs


def check(pairs: list[tuple[int, tuple[int, bytes]]]) -> None:
    with beam.Pipeline(runner=FnApiRunner()) as pipeline:
        pipeline | beam.Create(pairs) | RefuseRepeated("key", lambda: KEY)


def test_distinct_identifiers_pass() -> None:
    # Kills: a comparison of types ("1" is not "01"), of part of the digest, or of the first bytes.
    check(digests([f"{i}" for i in range(3000)], ["01", "", " 1", None], pa.array([-1])))


@pytest.mark.parametrize(
    "parts",
    [
        (["a", "b", "a"],),
        (["a"], ["b"], ["a"]),
        ([7], [7]),
        ([12345678901], [12345678901.0]),
        ([None, None],),
    ],
    ids=["in one part", "in two", "integers", "of two types", "null"],
)
def test_repeated_identifiers_fail(parts: tuple[Any, ...]) -> None:
    with pytest.raises(Exception, match="the column 'key' repeats values"):
        check(digests(*parts))


def test_digests_are_keyed() -> None:
    # Kills: a plain hash, from which identifiers can be guessed in a shuffle's files, and a key of
    # each release's own, by which a ledger could not compare what is in several.
    stranger = ReleaseKey.derive(bytes([1]) * 32, "release", b"")
    sibling = ReleaseKey.derive(bytes(32), "other", b"")
    assert digests(["a"]) == digests(["a"], key=sibling)
    assert digests(["a"])[0][1] != digests(["a"], key=stranger)[0][1]


def test_ids_of_two_columns_are_not_alike() -> None:
    # Kills: a value that means one document in one column and another in the other, and is one.
    assert digests(["1"], column="case") != digests(["1"], column="row")
    assert KEY.comparing("case") != KEY.comparing("row")
    assert KEY.comparing("case") == ReleaseKey.derive(bytes(32), "other", b"").comparing("case")
    assert KEY.comparing("case") != ReleaseKey.derive(bytes([1]) * 32, "test", b"").comparing(
        "case"
    )


def test_identifiers_go_in_buckets_of_their_digests() -> None:
    pairs = digests([str(i) for i in range(2000)])
    assert len({bucket for bucket, _ in pairs}) == len(pairs) == 64
    for bucket, (part, raw) in pairs:
        assert part == 0
        assert (np.frombuffer(raw, "<u8")[::2] >> np.uint64(58) == bucket).all()


def test_without_an_id_column_nothing_is_noted() -> None:
    identifiers = Identifiers(None, KEY, 0)
    texts = pa.array(["x"], pa.large_string())
    identifiers.add(Documents("file", np.arange(1), texts, pa.table({})))
    assert list(identifiers.outputs()) == []


def test_what_the_engine_doubles_is_not_the_columns_fault() -> None:
    # A retry may mend it, which no scheduler tries after bad input. Kills: digests of one unit of
    # work that are taken for repeated ids.
    pairs = digests(["a", "b"], ["c"])
    check(pairs)
    with pytest.raises(Exception, match="the engine doubled a part"):
        check([*pairs, pairs[0]])


def test_kept_digests_are_sealed_and_one_runs_own(tmp_path: Path) -> None:
    # They are alike in all releases under one master key. Kills: digests by which whoever sees the
    # folder links documents, and those of another run, or made up, that are taken for this one's.
    folders = [tmp_path / name for name in ("one", "other")]
    pairs = digests([f"case {n}" for n in range(50)])
    for folder in folders:
        folder.mkdir()
        with beam.Pipeline(runner=FnApiRunner()) as pipeline:
            pipeline | beam.Create(pairs) | RefuseRepeated("key", lambda: KEY, str(folder))
    found = kept(str(folders[0]), KEY)
    raw = b"".join(own for _, (_, own) in pairs)
    assert sorted(found[i : i + 16] for i in range(0, len(found), 16)) == sorted(
        raw[i : i + 16] for i in range(0, len(raw), 16)
    )
    for path in folders[0].iterdir():
        content = path.read_bytes()
        assert not any(raw[i : i + 16] in content for i in range(0, len(raw), 16))
    # What another run has left, under the same names or others; a file that is torn; one of a kind.
    for path in folders[1].iterdir():
        (folders[0] / path.name).write_bytes(path.read_bytes())
    (folders[0] / "torn").write_bytes(next(folders[1].iterdir()).read_bytes()[:20])
    assert kept(str(folders[0]), KEY) == found
    assert kept(str(folders[0]), ReleaseKey.derive(bytes(32), "other", b"")) == b""
