"""Documents that share an identifier are refused, wherever in the corpus they are."""

from __future__ import annotations

import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pytest
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from hypothesis import given
from hypothesis import strategies as st

from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.reading.documents import Documents
from quietcorpus.transforms.reading.identifiers import (
    Identifiers,
    RefuseRepeated,
    has_spelling,
    kept,
    spelled,
)

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


# Equal ids and users are spelled alike, whatever the type of their column.


EXACT = 2**53 - 1


def of(values: list[Any], kind: pa.DataType) -> list[str | None]:
    return spelled(pa.chunked_array([pa.array(values, kind)]), "input.id", "case")


WIDE = [0, 7, -7, 12345678901, 10**15, EXACT, -EXACT]


@pytest.mark.parametrize(
    "kind",
    [pa.int64(), pa.float64(), pa.decimal128(38, 0), pa.decimal128(38, 6), pa.decimal256(50, 9)],
)
def test_whole_numbers_have_one_spelling(kind: pa.DataType) -> None:
    # Kills: exponents, zeros after the point, -0, a null that is a value.
    values = [float(one) if kind == pa.float64() else one for one in WIDE]
    expected = [str(one) for one in WIDE]
    if pa.types.is_decimal(kind):
        values = [Decimal(one) for one in WIDE]
    assert of([*values, None], kind) == [*expected, None]


def test_small_types_and_strings_are_spelled_alike() -> None:
    # Kills: a spelling by the type, by which one id in two files is two.
    expected = ["0", "7", "100"]
    for kind in (pa.int8(), pa.uint64(), pa.float32(), pa.float64(), pa.decimal128(9, 2)):
        assert (
            of([Decimal(one) if pa.types.is_decimal(kind) else one for one in (0, 7, 100)], kind)
            == expected
        )
    for kind in (pa.string(), pa.large_string(), pa.binary()):
        assert of(expected, kind) == expected
    for plain in (pa.array(expected), pa.array(WIDE, pa.float64()), pa.array(WIDE)):
        dictionary = pa.chunked_array([plain.dictionary_encode()])
        assert spelled(dictionary, "input.id", "case") == of(plain.to_pylist(), plain.type)
    assert of([-0.0], pa.float64()) == of([Decimal("-0.00")], pa.decimal128(9, 2)) == ["0"]
    assert of([Decimal("1.50"), Decimal("-0.5")], pa.decimal128(9, 4)) == ["1.5", "-0.5"]
    assert of([None, None], pa.null()) == [None, None]
    assert of([], pa.float64()) == []


def test_uuids_have_one_spelling() -> None:
    # Kills: a UUID of Parquet's type that is another user than the same one as text.
    one = uuid.UUID("0123abcd-4567-89ef-cdef-0123456789ab")
    kinds = (pa.binary(16), pa.uuid().storage_type)
    for kind in kinds:
        assert of([one.bytes, None], kind) == of([str(one), None], pa.string())
    assert of([b"\xff\x00a"], pa.binary(3)) == ["ff0061"]
    assert has_spelling(pa.uuid())


@given(st.lists(st.integers(-EXACT, EXACT)))
def test_floats_are_the_integers_that_they_are(values: list[int]) -> None:
    assert of([float(one) for one in values], pa.float64()) == of(values, pa.int64())


@pytest.mark.parametrize("encoded", [False, True], ids=["plain", "dictionary"])
@pytest.mark.parametrize(
    ("value", "kind"),
    [
        *((one, pa.float64()) for one in (0.5, 2.0**53, -(2.0**53), 1e300, -1e300)),
        *((one, pa.float64()) for one in (float("nan"), float("inf"), -float("inf"))),
        *((one, pa.float32()) for one in (0.5, 2.0**24, -(2.0**24))),
        *((np.float16(one), pa.float16()) for one in (0.5, 2048, -2048)),
    ],
    ids=str,
)
def test_floats_that_may_stand_for_several_ids_are_refused(
    value: float, kind: pa.DataType, encoded: bool
) -> None:
    # Kills: two ids that were rounded to one, and one that another file has exactly: a user who is
    # bounded once in each; a bound for numbers above zero, or for 64 bits alone.
    array = pa.array([value, None], kind)
    if encoded and not pa.types.is_float16(kind):
        array = array.dictionary_encode()
    with pytest.raises(InputError) as raised:
        spelled(pa.chunked_array([array]), "input.id", "case")
    said = str(raised.value)
    assert said.startswith("input.id: the column 'case' has floating-point numbers that are not ")
    assert str(value) not in said


@pytest.mark.parametrize("bits", [16, 32, 64])
def test_floats_below_the_first_that_is_rounded_to_are_whole(bits: int) -> None:
    # Kills: a bound that refuses numbers that stand for themselves alone.
    most = {16: 2**11, 32: 2**24, 64: 2**53}[bits]
    kind = {16: pa.float16(), 32: pa.float32(), 64: pa.float64()}[bits]
    values = np.array([most - 1, 1 - most], f"f{bits // 8}")
    assert of(values, kind) == [str(most - 1), str(1 - most)]
    assert np.array([most + 1]).astype(f"f{bits // 8}")[0] == most  # why it is refused


@pytest.mark.parametrize(
    "kind",
    [
        pa.timestamp("s"),
        pa.timestamp("us", "UTC"),
        pa.date32(),
        pa.time64("ns"),
        pa.list_(pa.int8()),
    ],
)
def test_types_with_several_spellings_are_refused(kind: pa.DataType) -> None:
    # Kills: a timestamp in seconds beside the same one in microseconds.
    with pytest.raises(
        InputError, match=r"^input.id: the column 'case' is of type .* in another form; "
    ):
        of([], kind)
