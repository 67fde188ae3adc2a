"""Equal ids and users are spelled alike, whatever the type of their column."""

from __future__ import annotations

import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.reading.identifiers import has_spelling, spelled

EXACT = 2**53


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
    dictionary = pa.chunked_array([pa.array(expected).dictionary_encode()])
    assert spelled(dictionary, "input.id", "case") == expected
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


@pytest.mark.parametrize("value", [0.5, float(EXACT + 2), 1e300, float("nan"), float("inf")])
def test_floats_that_may_stand_for_several_ids_are_refused(value: float) -> None:
    # Kills: two ids that were rounded to one, and one that another file has exactly.
    with pytest.raises(InputError) as raised:
        of([1.0, value, None], pa.float64())
    said = str(raised.value)
    assert said.startswith("input.id: the column 'case' has floating-point numbers that are not ")
    assert str(value) not in said


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
