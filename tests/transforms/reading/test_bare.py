"""Kept columns of every nested type: their values come out, and nothing else of the input does."""

from __future__ import annotations

import base64
import itertools
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from released_files import released_file

from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.reading.bare import bare
from quietcorpus.transforms.reading.documents import Corpus
from quietcorpus.transforms.reading.sources import plan

CANARY = "xylocanary"
METADATA = {"comment": CANARY, CANARY: "1"}
ROWS = 6  # of which the first is rejected

Built = tuple[pa.Array, list[Any]]
"""An array, and its values."""


def field(name: str, kind: pa.DataType, *, nullable: bool = True) -> pa.Field:
    return pa.field(name, kind, nullable, metadata=METADATA)


def leaf(draw: st.DrawFn, kind: str, rows: int) -> Built:
    """Values of their own for every row, which no other row has."""
    first = draw(st.integers(0, 1000)) * 100
    numbers = [None if draw(st.booleans()) else first + i for i in range(rows)]
    strings = [None if n is None else f"{n:016}" for n in numbers]
    if kind in NUMBERS:
        return pa.array(numbers, NUMBERS[kind]), numbers
    if kind == "dictionary":
        # It holds a value that no row of it has.
        values = [*dict.fromkeys(s for s in strings if s), f"{CANARY} of a dictionary"]
        codes = pa.array([None if s is None else values.index(s) for s in strings], pa.int32())
        return pa.DictionaryArray.from_arrays(codes, pa.array(values)), strings
    if kind in EXTENSIONS:
        stored = [s.encode() if s and kind == "uuid" else s for s in strings]
        storage = pa.array(stored, EXTENSIONS[kind].storage_type)
        return pa.ExtensionArray.from_storage(EXTENSIONS[kind], storage), stored
    return pa.array(strings, pa.string_view() if kind == "view" else pa.string()), strings


NUMBERS = {"integer": pa.int64(), "zoned": pa.timestamp("us", "Asia/Tokyo")}
EXTENSIONS = {"uuid": pa.uuid(), "opaque": pa.opaque(pa.string(), CANARY, CANARY)}
LEAVES = (*NUMBERS, *EXTENSIONS, "string", "view", "dictionary")
NESTS = ("list", "large_list", "fixed", "struct", "map")


def build(draw: st.DrawFn, kinds: list[str], rows: int) -> Built:
    """An array whose type is nested as the kinds say, the outermost first."""
    kind, *inner = kinds
    if not inner:
        return leaf(draw, kind, rows)
    if kind == "struct":
        array, values = build(draw, inner, rows)
        other, others = leaf(draw, draw(st.sampled_from(LEAVES)), rows)
        fields = [field("a", array.type), field("b", other.type)]
        both = [{"a": a, "b": b} for a, b in zip(values, others, strict=True)]
        return pa.StructArray.from_arrays([array, other], fields=fields), both
    sizes = [2] * rows if kind == "fixed" else draw(st.lists(st.integers(0, 3), min_size=rows))
    ends = np.cumsum([0, *sizes[:rows]]).tolist()
    array, values = build(draw, inner, ends[-1])
    cut = [values[a:b] for a, b in itertools.pairwise(ends)]
    item = field(CANARY, array.type)
    match kind:
        case "list":
            return pa.ListArray.from_arrays(ends, array, type=pa.list_(item)), cut
        case "large_list":
            return pa.LargeListArray.from_arrays(ends, array, type=pa.large_list(item)), cut
        case "fixed":
            return pa.FixedSizeListArray.from_arrays(array, type=pa.list_(item, 2)), cut
    keys = [f"k{i:04}" for i in range(ends[-1])]
    kind_ = pa.map_(field(CANARY, pa.string(), nullable=False), item)
    pairs = list(zip(keys, values, strict=True))
    return pa.MapArray.from_arrays(ends, pa.array(keys, pa.string()), array, type=kind_), [
        pairs[a:b] for a, b in itertools.pairwise(ends)
    ]


@st.composite
def columns(draw: st.DrawFn) -> Built:
    nests = draw(st.lists(st.sampled_from(NESTS), max_size=3))
    return build(draw, [*nests, draw(st.sampled_from(LEAVES))], ROWS)


def corpus_file(folder: Path, table: pa.Table, form: str) -> str:
    """A file of this form that holds the table; where it is."""
    path = str(folder / f"corpus.{form}")
    if form == "arrow":
        with pa.ipc.new_stream(path, table.schema) as writer:
            writer.write_table(table)
        return path
    try:
        pq.write_table(table, path)
    except (
        pa.ArrowNotImplementedError
    ):  # Arrow cannot take every array apart: there is no such file
        assume(False)
    return path


def released(folder: Path, column: pa.Array, form: str = "parquet") -> Path:
    """The data file of a release that keeps the column; the first document is unreadable."""
    schema = pa.schema(
        [pa.field("text", pa.string()), field("x", column.type), field("n", pa.int32())],
        metadata=METADATA,
    )
    texts = [None, *["quiet world"] * (ROWS - 1)]
    table = pa.table([texts, column, list(range(ROWS))], schema=schema)
    return released_file(Corpus(corpus_file(folder, table, form), keep=("x", "n")), folder)


def contents(path: Path) -> Iterator[bytes]:
    """A file's bytes, its schema as Arrow wrote it, and every page, its dictionaries' too."""
    raw = path.read_bytes()
    yield raw
    yield base64.b64decode(pq.ParquetFile(path).metadata.metadata[b"ARROW:schema"])
    frame = raw.find(b"\x28\xb5\x2f\xfd")
    while frame >= 0:
        yield zstandard.ZstdDecompressor().decompressobj().decompress(raw[frame:])
        frame = raw.find(b"\x28\xb5\x2f\xfd", frame + 1)


def values_of(column: pa.ChunkedArray) -> list[Any]:
    """Values, and moments as their numbers."""
    return [_numbered(value) for value in column.to_pylist()]


def _numbered(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _numbered(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_numbered, value))
    return round(value.timestamp() * 1e6) if hasattr(value, "timestamp") else value


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(columns(), st.sampled_from(["parquet", "arrow"]))
def test_nothing_but_the_values_is_released(built: Built, form: str) -> None:
    # Kills: a nested type that is passed on as it is, with what its fields, its items' names, its
    # time zone or its extension say; a dictionary inside it, with values of no released row.
    column, expected = built
    with tempfile.TemporaryDirectory() as folder:
        path = released(Path(folder), column, form)
        for content in contents(path):
            assert CANARY.encode() not in content
            assert b"Tokyo" not in content
        table = pq.ParquetFile(path).read().sort_by("n")
        assert table["n"].to_pylist() == list(range(1, ROWS))
        assert values_of(table["x"]) == expected[1:]
        assert table.schema.field("x").type == bare(column.type)


def test_what_no_row_holds_is_not_released(tmp_path: Path) -> None:
    # An Arrow file may hold values below nulls, and between its lists. Kills: bytes of a row that
    # are released though the row has no such value.
    hidden = f"{CANARY} ab".encode()
    offsets = np.array([0, 15, 16, 17, 17, 17, 17], np.int32)
    assert len(hidden) == 13
    below = pa.Array.from_buffers(
        pa.string(),
        ROWS,
        [pa.py_buffer(bytes([0b111110])), pa.py_buffer(offsets), pa.py_buffer(hidden + b"cdef")],
    )
    between = pa.ListArray.from_arrays([1, 2, 2, 2, 2, 2, 3], pa.array([CANARY, "a", "b"]))
    under = pa.StructArray.from_arrays(
        [pa.array([CANARY] * ROWS)], ["a"], mask=pa.array([True] * ROWS)
    )
    for column in (below, between, under):
        path = released(tmp_path, column, "arrow")
        assert len(pq.read_table(path, use_threads=False)) == ROWS - 1
        for content in contents(path):
            assert CANARY.encode() not in content


def test_the_search_finds_what_is_there(tmp_path: Path) -> None:
    # The negative control: a canary in metadata, and one in a dictionary that no row refers to.
    values = pa.DictionaryArray.from_arrays(pa.array([0], pa.int32()), pa.array(["a", CANARY]))
    for name, kept in (
        ("metadata", pa.table([[1]], schema=pa.schema([field("x", pa.int8())]))),
        ("dictionary", pa.table({"x": pa.ListArray.from_arrays([0, 1], values)})),
    ):
        path = tmp_path / name
        pq.write_table(kept, path, compression="zstd")
        assert any(CANARY.encode() in content for content in contents(path)), name


@pytest.mark.parametrize(
    "kind",
    [
        pa.dense_union([pa.field("a", pa.string())]),
        pa.run_end_encoded(pa.int32(), pa.string()),
        pa.struct([pa.field("a", pa.sparse_union([pa.field("b", pa.string())]))]),
        pa.map_(pa.string(), pa.list_(pa.run_end_encoded(pa.int16(), pa.string()))),
        pa.list_view(pa.string()),
        pa.large_list(pa.large_list_view(pa.string())),
    ],
    ids=["union", "runs", "in a struct", "in a map", "view", "in a list"],
)
def test_a_type_that_cannot_be_rebuilt(kind: pa.DataType) -> None:
    # Kills: a type that is passed on because it is not known.
    with pytest.raises(TypeError, match=r"union|encoded|view"):
        bare(kind)


DICTIONARY = pa.dictionary(pa.int32(), pa.string())


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.opaque(DICTIONARY, CANARY, CANARY), pa.string()),
        (pa.dictionary(pa.int32(), pa.opaque(pa.string(), CANARY, CANARY)), pa.string()),
        (pa.dictionary(pa.int32(), DICTIONARY), pa.string()),
        (pa.opaque(pa.uuid(), CANARY, CANARY), pa.binary(16)),
        (pa.opaque(pa.list_(field(CANARY, DICTIONARY)), CANARY, CANARY), pa.list_(pa.string())),
    ],
    ids=str,
)
def test_a_type_that_is_wrapped_twice(kind: pa.DataType, values: pa.DataType) -> None:
    # Kills: to take off one wrapping alone, and refuse, or pass on, what is in it.
    made = bare(kind)
    assert made.equals(values)
    assert CANARY not in str(made)


@pytest.mark.parametrize("named", ["keep", "id"])
def test_a_column_that_cannot_be_rebuilt_is_refused(tmp_path: Path, named: str) -> None:
    views = pa.array([["a"]], pa.list_view(pa.string()))
    pq.write_table(pa.table({"text": ["quiet"], "x": views}), tmp_path / "corpus.parquet")
    corpus = Corpus(str(tmp_path / "*"), **({"keep": ("x",)} if named == "keep" else {"id": "x"}))
    with pytest.raises(InputError, match=f"^input.{named}: x in {tmp_path}/corpus.parquet is of"):
        plan(corpus)
