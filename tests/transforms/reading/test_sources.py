"""A corpus is read as it was planned, or not at all."""

from __future__ import annotations

import os
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from quietcorpus.transforms.errors import InputError, StageError
from quietcorpus.transforms.reading.documents import Corpus, Documents, Plan
from quietcorpus.transforms.reading.identifiers import spelled
from quietcorpus.transforms.reading.sources import batches, plan, read

LINES = "text of a person\n" * 5000


def appended(path: Path) -> None:
    path.write_text(path.read_text() + LINES)


def cut(path: Path) -> None:
    os.truncate(path, len(LINES) - 5)


def replaced(path: Path) -> None:
    other = path.with_name("other")
    other.write_text(LINES.swapcase())
    os.utime(other, (path.stat().st_atime, path.stat().st_mtime))
    other.replace(path)


def joined(path: Path) -> None:
    path.with_name("b.txt").write_text(LINES)


@pytest.mark.parametrize("change", [appended, cut, replaced, joined, Path.unlink])
def test_a_corpus_that_changes_while_it_is_read(tmp_path: Path, change: object) -> None:
    # Kills: figures and artefacts of a corpus that never was.
    path = tmp_path / "a.txt"
    path.write_text(LINES)
    corpus = Corpus(f"{tmp_path}/*.txt")
    assert sum(len(batch.texts) for batch in batches(corpus)) == 5000
    read = batches(corpus)
    next(read)
    assert callable(change)
    change(path)
    with pytest.raises((StageError, InputError), match=r"were changed, added|no file matches"):
        list(read)


@pytest.mark.parametrize("name", ["b.jsonl.gz", "b.csv.zst", "b.txt.gz", "b.ndjson.zst"])
def test_a_compressed_file_of_no_byte(tmp_path: Path, name: str) -> None:
    # Kills: a file that was cut at its very beginning, taken for one without documents. What is not
    # compressed has no end that it lacks.
    (tmp_path / "a.txt").write_text(LINES)
    (tmp_path / "b.txt").write_text("")
    assert len(plan(Corpus(f"{tmp_path}/*")).splits) == 1
    (tmp_path / name).write_text("")
    with pytest.raises(InputError, match=f"{name} is truncated to no byte; write it again$"):
        plan(Corpus(f"{tmp_path}/*"))


# Files of one corpus whose columns differ: read as one where all values keep their meaning.


NOT_NULL = pa.field("c", pa.int64(), nullable=False)
LIST = pa.list_(pa.int64())
MOMENT = pa.timestamp("us")
NOTHING = pa.list_(pa.null())
NESTED = pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string()))])


def write(folder: Path, name: str, columns: dict[str, Any], schema: pa.Schema | None = None) -> str:
    path, table = str(folder / name), pa.table(columns, schema=schema)
    if name.endswith(".parquet"):
        pq.write_table(table, path)
    else:
        with pa.ipc.new_file(path, table.schema) as file:
            file.write_table(table)
    return path


def one_table(corpus: Corpus) -> tuple[Plan, pa.Table]:
    """The columns of all documents, which a release joins without a cast."""
    found = plan(corpus)
    batches = [batch for split in found.splits for batch in read(split, corpus)]
    return found, pa.concat_tables([batch.columns for batch in batches])


PAIRS: dict[str, tuple[pa.Array, pa.Array, pa.DataType]] = {
    "null": (pa.array([1]), pa.nulls(2), pa.int64()),
    "null of text": (pa.array(["x"]), pa.nulls(2), pa.string()),
    "null of decimals": (pa.array([Decimal("1.50")]), pa.nulls(2), pa.decimal128(3, 2)),
    "null of lists": (pa.array([[1]]), pa.nulls(2), pa.list_(pa.field("element", pa.int64()))),
    "null of bytes": (pa.array([b"0123"], pa.binary(4)), pa.nulls(1), pa.binary(4)),
    "empty lists": (
        pa.array([[1]], LIST),
        pa.array([[], None], NOTHING),
        pa.list_(pa.field("element", pa.int64())),
    ),
    "null in structs": (
        pa.array([{"a": 1, "b": ["x"]}], NESTED),
        pa.array([{"a": None, "b": []}], pa.struct([("a", pa.null()), ("b", NOTHING)])),
        pa.struct([("a", pa.int32()), ("b", pa.list_(pa.field("element", pa.string())))]),
    ),
    "integers": (pa.array([1], pa.int8()), pa.array([2**40]), pa.int64()),
    "integers without a sign": (pa.array([-1], pa.int8()), pa.array([200], pa.uint8()), pa.int16()),
    "floats": (pa.array([0.1], pa.float32()), pa.array([0.1]), pa.float64()),
    "strings": (pa.array(["a"]), pa.array(["b"], pa.large_string()), pa.large_string()),
    "codes": (pa.array(["a"]), pa.array(["b"]).dictionary_encode(), pa.string()),
    "moments": (
        pa.array([1], pa.timestamp("us", "Europe/Rome")),
        pa.array([1], pa.timestamp("ns", "UTC")),
        pa.timestamp("ns", "UTC"),
    ),
    "decimals": (
        pa.array([Decimal("1.50")], pa.decimal128(5, 2)),
        pa.array([Decimal("12345.50")], pa.decimal128(9, 2)),
        pa.decimal128(9, 2),
    ),
}


@pytest.mark.parametrize("form", ["parquet", "arrow"])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("pair", PAIRS)
def test_types_of_one_meaning(tmp_path: Path, pair: str, turned: bool, form: str) -> None:
    # Kills: a first day that decides; a value that another type rounds; a day that is refused.
    one, other, kind = PAIRS[pair]
    days = [other, one] if turned else [one, other]
    for name, column in zip("ab", days, strict=True):
        write(tmp_path, f"{name}.{form}", {"text": ["x"] * len(column), "c": column})
    found, table = one_table(Corpus(str(tmp_path / "*"), keep=("c",)))
    assert found.schema.field("c").type.equals(kind)
    assert table.schema.equals(found.schema)
    expected = [value for column in days for value in column.cast(kind).to_pylist()]
    assert table["c"].to_pylist() == expected


OTHERS: dict[str, tuple[pa.Array, pa.Array, str, str]] = {
    "fractions": (pa.array([1]), pa.array([1.5]), "double", "int64"),
    "whole floats": (pa.array([1]), pa.array([1.0]), "double", "int64"),
    "digits": (pa.array([1]), pa.array(["1"]), "string", "int64"),
    "zones": (
        pa.array([1], pa.timestamp("us")),
        pa.array([1], pa.timestamp("us", "UTC")),
        "t",
        "t",
    ),
    "days": (pa.array([1], pa.date32()), pa.array([1], pa.timestamp("s")), "timestamp", "date32"),
    "wide": (pa.array([1], pa.uint64()), pa.array([-1], pa.int8()), "int8", "uint64"),
    "lists": (pa.array([[1]]), pa.array([["a"]]), "list<element: string>", "list<element: int64>"),
    "fields": (pa.array([{"a": 1}]), pa.array([{"b": 1}]), "struct<b: int64>", "struct<a: int64>"),
}


@pytest.mark.parametrize("case", OTHERS)
def test_types_of_two_meanings_are_named(tmp_path: Path, case: str) -> None:
    # Kills: a column that is cast by the first file's type; a line that names no type, or not both.
    one, other, kind, first_kind = OTHERS[case]
    first = write(tmp_path, "a.parquet", {"text": ["x"], "c": one})
    write(tmp_path, "b.parquet", {"text": ["x"], "c": pa.nulls(1)})
    last = write(tmp_path, "c.parquet", {"text": ["x"], "c": other})
    with pytest.raises(InputError) as raised:
        plan(Corpus(str(tmp_path / "*"), keep=("c",)))
    said = str(raised.value)
    assert said.startswith(f"input.keep: c in {last} is of type {kind}")
    assert f", and in {first} of type {first_kind}" in said


def test_values_beyond_the_type_of_all_files_are_named(tmp_path: Path) -> None:
    # Kills: a moment that becomes another one; an error that names no file.
    first = write(tmp_path, "a.parquet", {"text": ["x"], "c": pa.array([2**60], MOMENT)})
    write(tmp_path, "b.parquet", {"text": ["x"], "c": pa.array([1], pa.timestamp("ns"))})
    with pytest.raises(
        InputError, match=f"^input.path: c in {first} has values beyond its type in"
    ):
        one_table(Corpus(str(tmp_path / "*"), keep=("c",)))


def test_one_files_columns_need_not_be_nullable(tmp_path: Path) -> None:
    # Kills: DuckDB's days, whose columns are "not null" where the day's data has no null.
    schema = pa.schema([("text", pa.string()), NOT_NULL])
    write(tmp_path, "a.parquet", {"text": ["x"], "c": [1]}, schema)
    found, table = one_table(Corpus(str(tmp_path / "*"), keep=("c",)))
    assert not found.schema.field("c").nullable  # as ever: the bytes of releases do not change
    write(
        tmp_path,
        "b.parquet",
        {"text": ["x"], "c": [None]},
        pa.schema([("text", pa.string()), ("c", pa.int64())]),
    )
    found, table = one_table(Corpus(str(tmp_path / "*"), keep=("c",)))
    assert found.schema.field("c").nullable
    assert table["c"].to_pylist() == [1, None]


@pytest.mark.parametrize("name", ["a.parquet", "z.parquet", "a.arrow", "z.arrow"])
@pytest.mark.parametrize("kind", ["double", "null", "none"])
def test_an_empty_table_may_have_lost_its_types(tmp_path: Path, name: str, kind: str) -> None:
    # Kills: a day without documents that ends the run.
    lost = pa.array([], pa.float64() if kind == "double" else pa.null())
    write(tmp_path, name, {} if kind == "none" else {"text": lost, "c": lost, "k": lost})
    write(tmp_path, "m.parquet", {"text": ["x", "y"], "c": ["a", None], "k": [1, 2]})
    corpus = Corpus(str(tmp_path / "*"), keep=("c",), id="k")
    _, table = one_table(corpus)
    assert table["c"].to_pylist() == ["a", None]
    (tmp_path / "m.parquet").unlink()
    with pytest.raises(InputError):
        one_table(corpus)


def test_ids_of_several_types_are_spelled_alike(tmp_path: Path) -> None:
    # Kills: a day refused for ids that pandas wrote as floating-point numbers; "007" read as 7.
    write(tmp_path, "a.parquet", {"text": ["x"] * 2, "k": [7, 8]})
    write(tmp_path, "b.parquet", {"text": ["x"] * 2, "k": [9.0, None]})
    write(tmp_path, "c.parquet", {"text": ["x"] * 2, "k": ["007", "7"]})
    write(tmp_path, "d.parquet", {"text": ["x"], "k": pa.nulls(1)})
    (tmp_path / "e.jsonl").write_text('{"text": "x", "k": 5}\n')
    corpus = Corpus(str(tmp_path / "*"), id="k")
    found: list[str | None] = []
    for split in plan(corpus).splits:
        for batch in read(split, corpus):
            found += spelled(batch.columns["k"], "input.id", "k")
    assert found == ["7", "8", "9", None, "007", "7", None, "5"]


def test_a_column_without_a_value_in_any_file_tells_nothing_apart(tmp_path: Path) -> None:
    # Kills: documents of no user, all of which are left out in silence.
    first = write(tmp_path, "a.parquet", {"text": ["x"], "k": pa.nulls(1)})
    write(tmp_path, "b.parquet", {"text": ["x"], "k": pa.nulls(1)})
    with pytest.raises(InputError, match=f"^mechanism.user: k in {first} is of type null"):
        plan(Corpus(str(tmp_path / "*"), also=(("mechanism.user", "k"),)))


def lines(*records: str) -> str:
    return "".join(f"{record}\n" for record in records)


def json_documents(folder: Path, keep: tuple[str, ...]) -> list[Documents]:
    corpus = Corpus(str(folder / "*.jsonl"), keep=keep)
    return [batch for split in plan(corpus).splits for batch in read(split, corpus)]


def test_a_key_that_an_object_lacks_is_null_there(tmp_path: Path) -> None:
    # Kills: a key that the first thousand objects of a file lack; a file without the key.
    (tmp_path / "a.jsonl").write_text(lines('{"text": "x"}'))
    late = ['{"text": "x"}'] * 2999
    (tmp_path / "b.jsonl").write_text(lines(*late, '{"text": "x", "c": 1}'))
    found = [value for batch in json_documents(tmp_path, ("c",)) for value in batch.columns["c"]]
    assert [value.as_py() for value in found] == [None] * 3000 + ["1"]
    with pytest.raises(InputError, match=f"^input.keep: {tmp_path}/a.jsonl has no column 'd'; che"):
        json_documents(tmp_path, ("c", "d"))
    (tmp_path / "c.jsonl").write_text("not JSON\n")
    (batch,) = json_documents(tmp_path, ("c",))[-1:]
    assert len(batch.rejects) == 1
