"""Rows as documents and documents as rows: kept values of every type, batches, and what is refused.

Beam finds no types in this module's rows if their annotations are strings.
"""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NamedTuple, Optional

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pytest
from apache_beam.pvalue import TaggedOutput
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.testing.util import assert_that, equal_to
from apache_beam.transforms.window import TimestampedValue
from apache_beam.utils.timestamp import MIN_TIMESTAMP, Timestamp
from apache_beam.utils.windowed_value import WindowedValue

from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.transforms.composed import reading
from quietcorpus.transforms.composed.fields import Fields
from quietcorpus.transforms.composed.reading import COPIES, ERRORS, ReadRows
from quietcorpus.transforms.composed.release_rows import AsRows
from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.reading.documents import Documents
from quietcorpus.transforms.reading.identifiers import TAG


class Kept(NamedTuple):
    """A row with a field of every type that may be kept, and others."""

    id: bytes
    text: str
    name: Optional[str]  # noqa: UP045
    raw: Optional[bytes]  # noqa: UP045
    whole: int
    small: np.int16
    number: Optional[float]  # noqa: UP045
    single: np.float32
    flag: bool
    time: Optional[Timestamp]  # noqa: UP045
    other: Sequence[int]
    price: Decimal


KEEP = ("name", "raw", "whole", "small", "number", "single", "flag", "time")
FULL = Kept(
    b"\xff\0", "a b", "é", b"\0", -(2**63), np.int16(7), 0.1, np.float32(0.1), True,
    Timestamp(micros=-1), [1], Decimal(1),
)  # fmt: skip
EMPTY = Kept(b"", "", None, None, 0, np.int16(0), None, np.float32(0), False, None, [], Decimal(0))


def read(rows: Sequence[Any], *, errors: bool = False, **fields: Any) -> list[Any]:
    """Return the outputs of one bundle, by tag."""
    given = {"text": "text", "id": "id", "keep": ()} | fields
    reader = ReadRows(
        Fields.of(Kept, **given), lambda: ReleaseKey(bytes(32)), "Label", errors=errors
    )
    reader.start_bundle()
    outputs = [output for row in rows for output in reader.process(row)]
    return [_bare(output) for output in [*outputs, *reader.finish_bundle()]]


def _bare(output: Any) -> Any:
    if isinstance(output, TaggedOutput):
        return TaggedOutput(output.tag, _bare(output.value))
    return output.value if isinstance(output, WindowedValue) else output


def documents(outputs: Sequence[Any]) -> list[Documents]:
    return [output for output in outputs if isinstance(output, Documents)]


def test_kept_values_come_back_as_they_were() -> None:
    # Kills: a value that is rounded, decoded or shifted, and a null that becomes one.
    (batch,) = documents(read([FULL, EMPTY], keep=KEEP))
    fields = Fields.of(Kept, "text", "id", KEEP)
    assert fields.times == ["time"]
    rows = list(AsRows(fields.times).process(batch.columns))
    for row, given in zip(rows, (FULL, EMPTY), strict=True):
        assert row._asdict() == {name: getattr(given, name) for name in KEEP}
    assert batch.ids == [b"b\xff\0", b"b"]
    declared = dict(fields.row_type([pa.field("terms", pa.list_(pa.int32()))])._fields)
    assert [*declared] == ["id", *KEEP, "terms"]
    assert declared["id"] is str
    assert declared["small"] is np.int16
    assert declared["terms"] == Sequence[np.int32]


def test_long_ids_are_whole() -> None:
    # Kills: ids by their first bytes, with which equal texts share their noise.
    given = [bytes(1 << 17) + bytes([number]) for number in range(2)]
    (batch,) = documents(read([EMPTY._replace(id=one) for one in given]))
    assert batch.ids == [b"b" + one for one in given]


@pytest.mark.parametrize("name", ["other", "price"])
def test_what_has_no_form_is_not_kept(name: str) -> None:
    with pytest.raises(InputError, match=rf"^keep: the field '{name}' is of type .*; give one "):
        Fields.of(Kept, "text", "id", (name,))


def test_a_row_without_a_field_is_unreadable() -> None:
    # Kills: a row that is not as the schema says, and passes, or that no coder takes once others
    # are released: a null in a field that has none.
    with pytest.raises(InputError, match="a row cannot be read: the field 'text' is null"):
        read([beam.Row(id=b"a")])
    rows = [beam.Row(id=b"a", whole=1), FULL._replace(whole=2**63), FULL._replace(flag=None)]
    found = read(rows, errors=True, keep=KEEP)
    errors = [one.value.reason for one in found if isinstance(one, TaggedOutput)]
    assert errors == [
        "the field 'small' is null",
        "the field 'whole' does not fit into 64 bits",
        "the field 'flag' is null",
    ]
    assert documents(found) == []


def test_batches_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    # Kills: a bundle that is held in memory whole, and rows that two batches have.
    monkeypatch.setattr(reading, "BATCH_DOCUMENTS", 4)
    monkeypatch.setattr(reading, "BATCH_BYTES", 100)
    rows = [FULL._replace(id=b"%d" % n, text="x" * (50 if n > 7 else 1)) for n in range(11)]
    outputs = read(rows)
    found = documents(outputs)
    assert [len(batch.texts) for batch in found] == [4, 4, 2, 1]
    assert [one for batch in found for one in batch.ids or ()] == [b"b%d" % n for n in range(11)]
    tags = [output.tag for output in outputs if isinstance(output, TaggedOutput)]
    assert tags.count(COPIES) == 4
    assert tags.count(TAG) >= 4
    assert ERRORS not in tags


def test_times_of_rows_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    # Kills: a batch, and every row that is released with it, at the time of the row that completed
    # it: when a document was written is a field that nobody has kept.
    monkeypatch.setattr(reading, "BATCH_DOCUMENTS", 4)
    fields = Fields.of(Kept, "text", "id", ())
    reader = ReadRows(fields, lambda: ReleaseKey(bytes(32)), "Label", errors=False)
    with beam.Pipeline(FnApiRunner()) as pipeline:
        rows = pipeline | beam.Create([FULL._replace(id=b"%d" % n) for n in range(6)])
        timed = rows | beam.Map(lambda row: TimestampedValue(row, 1000 + int(row.id)))
        found = timed | beam.ParDo(reader).with_outputs(TAG, COPIES, main="documents")
        outputs = (found["documents"], found[TAG], found[COPIES]) | beam.Flatten()
        times = outputs | beam.Map(lambda _, time=beam.DoFn.TimestampParam: time.micros)
        assert_that(times | beam.Distinct(), equal_to([MIN_TIMESTAMP.micros]))
