"""Rows that come many in one table: the documents that the same rows one by one are.

Beam finds no types in this module's rows if their annotations are strings.
"""

import json
import pickle
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple, Optional

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apache_beam.pvalue import TaggedOutput
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from composed import Doc, written
from machine import MASTER_KEY

from quietcorpus.beam import PrivatizeWords
from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.transforms.composed import reading
from quietcorpus.transforms.composed.fields import Fields
from quietcorpus.transforms.composed.reading import COPIES, ReadBatches, ReadRows
from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.reading.copies import Copies
from quietcorpus.transforms.reading.documents import Documents
from quietcorpus.transforms.reading.identifiers import TAG


class Kept(NamedTuple):
    """A row with a field of every type that Arrow has, and one that is not read."""

    id: int
    text: str
    name: Optional[str]  # noqa: UP045
    raw: Optional[bytes]  # noqa: UP045
    small: np.int16
    number: Optional[float]  # noqa: UP045
    single: np.float32
    flag: bool
    secret: str


KEEP = ("name", "raw", "small", "number", "single", "flag")
FULL = 4
"""Documents of a batch, in these tests."""


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make batches small."""
    monkeypatch.setattr(reading, "BATCH_DOCUMENTS", FULL)


def table(size: int, **changes: pa.Array | None) -> pa.Table:
    """Return rows with nulls where there may be some; a change of None is no such column."""
    numbers = range(size)
    columns = {
        "secret": pa.array([f"zqx{n}" for n in numbers]),
        "text": pa.array([f"text é {n}" * n for n in numbers]),
        "id": pa.array([n - 2 for n in numbers], pa.int64()),
        "name": pa.array([None if n % 3 else f"n{n}" for n in numbers]),
        "raw": pa.array([None if n % 2 else b"\xff\0" for n in numbers], pa.binary()),
        "small": pa.array([-n for n in numbers], pa.int16()),
        "number": pa.array([None if n == 1 else n / 7 for n in numbers], pa.float64()),
        "single": pa.array([n / 7 for n in numbers], pa.float32()),
        "flag": pa.array([n % 2 == 0 for n in numbers]),
    } | changes
    return pa.table({name: column for name, column in columns.items() if column is not None})


def reader(make: type[ReadRows], *, errors: bool = False) -> ReadRows:
    fields = Fields.of(Kept, "text", "id", KEEP)
    made = make(fields, lambda: ReleaseKey(bytes(32)), "Label", errors=errors)
    made.start_bundle()
    return made


def outputs(made: ReadRows, found: Iterable[Any]) -> tuple[list[Documents], list[Any]]:
    """Return the batches and the errors of a bundle, given what its rows have yielded."""
    plain = [getattr(one, "value", one) for one in [*found, *made.finish_bundle()]]
    errors = [one for one in plain if isinstance(one, beam.Row)]
    return [one for one in plain if isinstance(one, Documents)], errors


def in_tables(*tables: pa.Table, errors: bool = False) -> tuple[list[Documents], list[Any]]:
    made = reader(ReadBatches, errors=errors)
    assert isinstance(made, ReadBatches)
    return outputs(made, [one for table in tables for one in made.process_batch(table)])


def one_by_one(*tables: pa.Table, errors: bool = False) -> tuple[list[Documents], list[Any]]:
    made = reader(ReadRows, errors=errors)
    rows = [beam.Row(**row) for table in tables for row in table.to_pylist()]
    return outputs(made, [one for row in rows for one in made.process(row)])


def tagged(outputs: Iterable[Any]) -> tuple[Copies, list[bytes]]:
    """Return the copies that outputs count in all, and the digests of ids that they hold."""
    given = [one for one in outputs if isinstance(one, TaggedOutput)]
    values = [(one.tag, getattr(one.value, "value", one.value)) for one in given]
    assert {tag for tag, _ in values} <= {COPIES, TAG}
    digests = b"".join(own[1][1] for tag, own in values if tag == TAG)
    copies = sum((own for tag, own in values if tag == COPIES), start=Copies())
    return copies, sorted(digests[n : n + 16] for n in range(0, len(digests), 16))


@pytest.mark.parametrize("size", [FULL, FULL - 1, 3 * FULL + 2])
def test_tables_have_the_tagged_outputs_of_their_rows(size: int) -> None:
    # Kills: whole batches whose copies of the text are not counted, or whose ids are not compared.
    given = table(size, name=pa.array([f"text é {n}" * n for n in range(size)]))
    rows, tables = reader(ReadRows), reader(ReadBatches)
    assert isinstance(tables, ReadBatches)
    single = [one for row in given.to_pylist() for one in rows.process(beam.Row(**row))]
    copies, digests = tagged([*single, *rows.finish_bundle()])
    assert tagged([*tables.process_batch(given), *tables.finish_bundle()]) == (copies, digests)
    assert copies.documents == dict.fromkeys(KEEP, size)
    assert copies.found["name"] == size - 1
    assert len(digests) == size


def whole(batches: list[Documents]) -> dict[bytes, dict[str, Any]]:
    """Return all documents by their ids, with their columns' types."""
    found = {}
    for batch in batches:
        names = batch.columns.schema
        others = batch.columns.to_pylist()
        assert batch.ids is not None
        for one, text, other in zip(batch.ids, batch.texts.to_pylist(), others, strict=True):
            found[one] = {"text": text, "types": [*zip(names.names, names.types, strict=True)]}
            found[one] |= other
    return found


@pytest.mark.parametrize(
    "types", [{}, {"text": pa.large_string(), "id": pa.int32(), "number": pa.float32()}], ids=str
)
def test_tables_hold_the_documents_of_their_rows(types: dict[str, pa.DataType]) -> None:
    # Kills: a value that is shifted, rounded or of its neighbour's field; a null that is lost; rows
    # that two batches have, or none; another id, which would draw other noise.
    given = table(11)
    given = given.set_column(4, "raw", given["raw"].cast(pa.large_binary()))
    for name, kind in types.items():
        place = given.schema.get_field_index(name)
        given = given.set_column(place, name, given[name].cast(kind))
    parts = (given.slice(0, 9), given.slice(9))
    found, _ = in_tables(*parts)
    assert [len(batch.rows) for batch in found] == [4, 4, 3]
    assert whole(found) == whole(one_by_one(*parts)[0])
    assert len(whole(found)) == len(given)
    assert list(whole(found)) == [b"i%d" % (n - 2) for n in range(11)]


@pytest.mark.parametrize(
    ("changes", "reasons"),
    [
        ({"text": None}, ["the field 'text' is null"] * 4),
        ({"text": pa.array(["a", None, "b", None])}, ["the field 'text' is null"] * 2),
        ({"id": pa.array([1, 2, 3, None])}, ["the field 'id' is null"]),
        ({"flag": pa.array([True, None, True, True])}, ["the field 'flag' is null"]),
        ({"name": pa.array([7, None, None, None])}, ["the field 'name' is not a string"]),
        ({"text": pa.array([b"a"] * 4)}, ["the field 'text' is not a string"] * 4),
        ({"small": pa.array([1, 2, 1 << 15, 3])}, ["the field 'small' does not fit into 16 bits"]),
        ({"id": pa.array([1, 2, 3, 1 << 63], pa.uint64())}, [
            "the field 'id' does not fit into 64 bits"
        ]),
    ],
    ids=["no text", "null text", "null id", "null flag", "number", "bytes", "16 bits", "64 bits"],
)  # fmt: skip
def test_rows_that_cannot_be_read_are_told_from_others(
    changes: dict[str, Any], reasons: list[str]
) -> None:
    # Kills: a table that is believed for its schema, where its own columns are others, or none.
    given = table(FULL, **changes)
    found, errors = in_tables(given, errors=True)
    assert [one.reason for one in errors] == reasons
    assert sum(len(batch.rows) for batch in found) == FULL - len(reasons)
    if None not in changes.values():
        expected, _ = one_by_one(given, errors=True)
        assert whole(found) == whole(expected)
    with pytest.raises(InputError, match=r"^Label: a row cannot be read: ") as raised:
        in_tables(given)
    assert "zqx" not in str(raised.value)


@pytest.mark.parametrize("size", [FULL, FULL - 1], ids=["whole", "part"])
def test_strings_that_are_no_strings_are_unreadable(size: int) -> None:
    # Kills: bytes of a damaged file that are taken for text, or that fail a job which collects.
    raw = pa.array([b"a", b"zqx\xff", *[b"b"] * (size - 2)])
    text = pa.StringArray.from_buffers(size, *raw.buffers()[1:])
    found, errors = in_tables(table(size, text=text), errors=True)
    assert [one.reason for one in errors] == ["the field 'text' is not valid UTF-8"]
    assert [one["text"] for one in whole(found).values()] == ["a", *["b"] * (size - 2)]


def test_batches_hold_their_own_documents_alone() -> None:
    # Kills: a batch that keeps all rows of its table, and takes them along to another worker.
    found, _ = in_tables(table(40 * FULL))
    assert len(found) == 40
    assert b"text \xc3\xa9 159" in pickle.dumps(found[-1].texts)
    assert b"text \xc3\xa9 159" not in pickle.dumps(found[0])
    assert b"zqx" not in pickle.dumps(found[0])


def test_batches_of_long_texts_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    # Kills: as many documents in a batch as ever, however long they are.
    monkeypatch.setattr(reading, "BATCH_BYTES", 100)
    found, _ = in_tables(table(FULL, text=pa.array(["x" * 60] * FULL)))
    assert [len(batch.rows) for batch in found] == [2, 2]


def test_a_source_of_tables_is_read_in_tables(
    tmp_path: Path, word_index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Kills: tables that are taken apart, or whose fields are found by their place, by which a
    # secret of the second file would be its text; other noise than that of single rows.
    monkeypatch.setenv("QUIETCORPUS_MASTER_KEY", MASTER_KEY)
    taken = []
    process_batch = ReadBatches.process_batch

    def seen(self: Any, given: pa.Table) -> Any:
        taken.append(len(given))
        return process_batch(self, given)

    seen._beam_yields_elements = True  # type: ignore[attr-defined]
    monkeypatch.setattr(ReadBatches, "process_batch", seen)
    rows = {
        "number": [*range(9)],
        "body": ["fires in the australian state", None, *["the of"] * 7],
        "product": ["a"] * 9,
        "secret": ["zqx state"] * 9,
    }
    given = pa.table(rows)
    (tmp_path / "in").mkdir()
    pq.write_table(given.slice(0, 5), tmp_path / "in" / "1.parquet")
    pq.write_table(given.slice(5).select(sorted(rows)), tmp_path / "in" / "2.parquet")
    made = PrivatizeWords(
        "test", index=word_index, mechanism="madlib", epsilon=30, text="body", id="number",
        keep=["number"], errors="collect",
    )  # fmt: skip
    with beam.Pipeline(FnApiRunner()) as pipeline:
        docs = [Doc(**row) for row in given.to_pylist()]
        sources = {
            "tables": beam.io.ReadFromParquet(f"{tmp_path}/in/*", as_rows=True),
            "rows": beam.Create(docs).with_output_types(Doc),
        }
        for name, source in sources.items():
            found = pipeline | name >> source | f"{name} released" >> made
            for kind, output in (("rows", found.rows), ("errors", found.errors)):
                lines = output | f"{name} {kind}" >> beam.Map(_line)
                lines | f"write {name} {kind}" >> beam.io.WriteToText(f"{tmp_path}/{name}-{kind}")
    assert sorted(taken) == [4, 5]
    assert len(written(tmp_path, "rows-rows")) == 8
    assert written(tmp_path, "tables-rows") == written(tmp_path, "rows-rows")
    assert len(written(tmp_path, "tables-errors")) == 1


def _line(row: Any) -> str:
    return json.dumps(row._asdict())
