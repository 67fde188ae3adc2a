"""Every type of Arrow, in every kind of file that holds it: its exact values, or one line.

`docs/reference/types.md` has the table of it, which

    python tests/transforms/reading/test_columns.py docs/reference/types.md

writes anew (with this folder's parent on the path).
"""

from __future__ import annotations

import math
import sys
import tempfile
from collections.abc import Iterator
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from machine import ROOT
from released_files import released_file

from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.reading.columns import is_as_read
from quietcorpus.transforms.reading.documents import Corpus
from quietcorpus.transforms.reading.identifiers import as_text, spelled
from quietcorpus.transforms.reading.sources import plan, read

FORMS = ("parquet", "file", "stream")
DOCUMENT = ROOT / "docs" / "reference" / "types.md"
ROWS = 6
BITS32 = [-(1 << 31), -1, 0, (1 << 31) - 1, None]
BITS64 = [-(1 << 63), -1, 0, (1 << 63) - 1, None]
DAY = 86_400
UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
PAIR = pa.list_(pa.int64(), 2)


def stored(kind: pa.DataType, numbers: list[int | None]) -> pa.Array:
    """Values of a type, by the numbers that stand for them, valid or not."""
    return pa.array(numbers, pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)


def floats(kind: pa.DataType, *bits: int) -> pa.Array:
    return pa.array(bits, {16: pa.uint16(), 32: pa.uint32(), 64: pa.uint64()}[kind.bit_width]).view(
        kind
    )


def extended(kind: pa.DataType, values: list[Any]) -> pa.Array:
    return pa.ExtensionArray.from_storage(kind, pa.array(values, kind.storage_type))


def coded(values: pa.Array, **options: Any) -> pa.Array:
    """A dictionary, of which one value is in no row."""
    return pa.DictionaryArray.from_arrays(pa.array([1, 0, None], pa.uint32()), values, **options)


def whole_numbers() -> Iterator[tuple[str, pa.Array]]:
    for bits in (8, 16, 32, 64):
        most = (1 << (bits - 1)) - 1
        yield f"int{bits}", pa.array([-most - 1, 0, most, None], f"int{bits}")
        yield f"uint{bits}", pa.array([0, 2 * most + 1, None], f"uint{bits}")


def moments() -> Iterator[tuple[str, pa.Array]]:
    yield "date32", stored(pa.date32(), BITS32)
    days = [None if one is None else one * DAY * 1000 for one in BITS32]
    yield "date64", stored(pa.date64(), days)
    for unit, size in UNITS.items():
        short = unit in ("s", "ms")
        time = pa.time32(unit) if short else pa.time64(unit)
        yield str(time).split("(")[0], stored(time, [0, DAY * size - 1, None])
        far = BITS64
        if unit == "s":  # Parquet has milliseconds instead
            far = [-((1 << 63) // 1000), -1, 0, (1 << 63) // 1000, None]
        yield f"timestamp[{unit}]", stored(pa.timestamp(unit), far)
        zoned = stored(pa.timestamp(unit, "Asia/Tokyo"), far)
        yield f"timestamp[{unit}] with a time zone", zoned
        yield f"duration[{unit}]", stored(pa.duration(unit), BITS64)


def decimals() -> Iterator[tuple[str, pa.Array]]:
    for bits, digits in ((32, 9), (64, 18), (128, 38), (256, 38)):
        kind = getattr(pa, f"decimal{bits}")(digits, 2)
        most = "9" * (digits - 2) + ".99"
        name = f"decimal{bits}" + (" of at most 38 digits" if bits == 256 else "")
        yield name, pa.array([*map(Decimal, (f"-{most}", "1.10", most)), None], kind)
    yield "decimal of a negative scale", pa.array([Decimal(12300), None], pa.decimal128(5, -2))
    above = pa.array([12, 0], pa.int64()).buffers()[1]
    yield (
        "decimal of a scale above its precision",
        pa.Array.from_buffers(pa.decimal128(2, 4), 1, [None, above]),
    )


def nested() -> Iterator[tuple[str, pa.Array]]:
    lists = [[1], [], None, [None]]
    for name in ("list", "large_list"):
        yield name, pa.array(lists, getattr(pa, name + "_" * (name == "list"))(pa.int64()))
    yield "fixed_size_list", pa.array([[1, 2], [3, None]], PAIR)
    yield "list of fixed_size_list", pa.array([[[1, 2]], [], None], pa.list_(PAIR))
    yield "struct", pa.array([{"a": 1, "b": "x"}, {"a": None, "b": None}, None])
    far = stored(pa.timestamp("us"), BITS64)
    yield "struct of far timestamps", pa.StructArray.from_arrays([far], ["a"])
    pairs = [[("a", 1), ("b", None)], [], [("b", 1), ("a", 2)], None]
    yield "map", pa.array(pairs, pa.map_(pa.string(), pa.int64()))
    yield "list of dictionaries of views", pa.ListArray.from_arrays([0, 2, 3], coded(VIEWS))
    yield "list of null", pa.array([[None], [], None], pa.list_(pa.null()))


VIEWS = pa.array(["", "a string of more than 12 bytes"], pa.string_view())


def leaves() -> Iterator[tuple[str, pa.Array]]:
    yield "null", pa.nulls(3)
    yield "bool", pa.array([True, False, None])
    # Python's NaN, minus infinity, minus zero, the largest and the smallest.
    yield "float16", floats(pa.float16(), 0x7E00, 0xFC00, 0x8000, 0x7BFF, 1)
    yield "float32", floats(pa.float32(), 0x7FC00000, 0xFF800000, 0x80000000, 0x7F7FFFFF, 1)
    yield (
        "float64",
        floats(pa.float64(), 0x7FF8 << 48, 0xFFF << 52, 1 << 63, (0x7FF << 52) - 1),
    )
    strings = pa.array(["", "x\0y", "é\U0001f98a", "\u2028 of more than 12 bytes", None])
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        yield str(kind), strings.cast(kind)
    binaries = pa.array([b"", b"\xff\0", b"of more than twelve bytes", None])
    for kind in (pa.binary(), pa.large_binary(), pa.binary_view()):
        yield str(kind), binaries.cast(kind)
    yield "fixed_size_binary", pa.array([b"\xff\0ab", None], pa.binary(4))
    yield "dictionary of strings", coded(pa.array(["b", "a"]))
    yield "dictionary of string views", coded(VIEWS, ordered=True)
    yield "dictionary of numbers", coded(pa.array([1 << 62, 2, 3]))


def extensions() -> Iterator[tuple[str, pa.Array]]:
    yield "arrow.uuid", extended(pa.uuid(), [b"\xff" * 16, None])
    yield "arrow.json", extended(pa.json_(), ['{"a": 1.10}', None])
    yield "arrow.bool8", extended(pa.bool8(), [0, 1, 2, None])
    yield "arrow.opaque", extended(pa.opaque(pa.binary(), "x", "y"), [b"z", None])
    tensor = pa.fixed_shape_tensor(pa.float32(), [1, 2])
    yield "arrow.fixed_shape_tensor", extended(tensor, [[1, 2], [3, 4]])


REFUSED: dict[str, pa.Array] = {
    "month_day_nano_interval": pa.array([pa.MonthDayNano([1, 2, 3])]),
    "decimal256 of more than 38 digits": pa.array([Decimal("1.10")], pa.decimal256(39, 2)),
    "fixed_size_binary of 0 bytes": pa.array([b""], pa.binary(0)),
    "fixed_size_list of 0 items": pa.array([[]], pa.list_(pa.int64(), 0)),
    "list_view": pa.array([[1]], pa.list_view(pa.int64())),
    "large_list_view": pa.array([[1]], pa.large_list_view(pa.int64())),
    "run_end_encoded": pa.RunEndEncodedArray.from_arrays(pa.array([1], pa.int32()), ["a"]),
    "struct without fields": pa.array([{}], pa.struct([])),
    "struct that repeats a field's name": pa.StructArray.from_arrays(
        [pa.array([1]), pa.array(["x"])], ["a", "a"]
    ),
    "list of structs without fields": pa.array([[{}]], pa.list_(pa.struct([]))),
    "dense_union": pa.UnionArray.from_dense(
        pa.array([0], pa.int8()), pa.array([0], pa.int32()), [pa.array([1])]
    ),
    "sparse_union": pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])]),
}
ACCEPTED = {
    name: array
    for part in (leaves(), whole_numbers(), moments(), decimals(), nested(), extensions())
    for name, array in part
}
TYPES = ACCEPTED | REFUSED
NOT_BY_DUCKDB = {f"timestamp[{u}]{zone}" for u in ("s", "ms") for zone in ("", " with a time zone")}
"""The columns that DuckDB does not read, since its own timestamps end in the year 294,246."""


def write(folder: str | Path, columns: dict[str, pa.Array], form: str) -> str:
    """Write a table as a file of this form; where it is."""
    table = pa.table(columns)
    path = f"{folder}/corpus.{'parquet' if form == 'parquet' else 'arrow'}"
    if form == "parquet":
        pq.write_table(table, path)
    else:
        made = pa.ipc.new_stream if form == "stream" else pa.ipc.new_file
        with made(path, table.schema) as writer:
            writer.write_table(table)
    return path


@cache
def carries(form: str, name: str) -> bool:
    """Whether a file of this form can hold the type."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            write(folder, {"x": TYPES[name]}, form)
        except (pa.ArrowNotImplementedError, OSError):
            return False
    return True


def released(folder: Path, columns: dict[str, pa.Array], form: str) -> Path:
    """The data file of a release that keeps all of these columns."""
    rows = len(next(iter(columns.values())))
    own = {"text": pa.array(["quiet world"] * rows), "n": pa.array(range(rows))}
    return released_file(Corpus(write(folder, own | columns, form), keep=("n", *columns)), folder)


def values(array: pa.Array) -> list[Any]:
    """An array's exact values: floating-point numbers by their bits, moments in nanoseconds."""
    kind, types = array.type, pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return values(array.storage)
    if types.is_nested(kind) or types.is_dictionary(kind):
        return composed(array)
    if types.is_floating(kind):
        return array.view(getattr(pa, f"uint{kind.bit_width}")()).to_pylist()
    if types.is_temporal(kind):
        day = types.is_date(kind)
        size = DAY * 10**9 if types.is_date32(kind) else 10**9 // UNITS["ms" if day else kind.unit]
        numbers = array.view(pa.int32() if kind.bit_width == 32 else pa.int64()).to_pylist()
        return [None if number is None else number * size for number in numbers]
    text = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
    return (array.cast(pa.string()).cast(pa.binary()) if text else array).to_pylist()


def composed(array: pa.Array) -> list[Any]:
    """The values of an array of a type that is made of others."""
    if pa.types.is_dictionary(array.type):
        named = values(array.dictionary)
        return [None if code is None else named[code] for code in array.indices.to_pylist()]
    if pa.types.is_struct(array.type):
        rows = [list(row) for row in zip(*map(values, array.flatten()), strict=True)]
        return [row if one else None for row, one in zip(rows, array.is_valid(), strict=True)]
    return [values(one.values) if one.is_valid else None for one in array]


@pytest.fixture(scope="module", params=FORMS)
def release(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A release that keeps a column of every accepted type: the columns, and the data file."""
    form = request.param
    given = {
        name: pa.concat_arrays([array] * ROWS).slice(0, ROWS)
        for name, array in ACCEPTED.items()
        if carries(form, name)
    }
    return given, released(tmp_path_factory.mktemp(form), given, form)


def test_every_value_comes_out_as_it_went_in(release: Any) -> None:
    # Kills: a rounding, a wrap to another century, a null or a NaN that changes, a type that only
    # one of the readers of files handles.
    given, path = release
    table = pq.ParquetFile(path).read(use_threads=False).sort_by("n")
    assert len(given) > 50
    assert table["n"].to_pylist() == list(range(ROWS))
    for name, array in given.items():
        assert values(table[name].combine_chunks()) == values(array), name


def test_duckdb_and_polars_open_what_is_released(release: Any) -> None:
    # Kills: a file that is published, paid for, and that people cannot open.
    given, path = release
    assert len(pl.read_parquet(path)) == ROWS
    for name in given:
        opened = f"create or replace temp table t as select \"{name}\" from '{path}'"
        if name in NOT_BY_DUCKDB:
            with pytest.raises(duckdb.ConversionException):
                duckdb.sql(opened)
        else:
            duckdb.sql(opened)


def test_a_refusal_names_column_and_type_before_anything_is_read(tmp_path: Path) -> None:
    for name, array in REFUSED.items():
        for form in filter(lambda form, name=name: carries(form, name), FORMS):
            path = write(tmp_path, {"text": pa.array(["a"]), "x": array, "n": pa.array([1])}, form)
            with pytest.raises(InputError) as raised:
                plan(Corpus(path, keep=("n", "x")))
            line = str(raised.value)
            assert line.startswith(f"input.keep: x in {path} is of, or holds, the type "), name
            assert "\n" not in line
            # A column that no key names may be of any type.
            unasked = Corpus(path, keep=("n",))
            (documents,) = read(plan(unasked).splits[0], unasked)
            assert documents.columns["n"].to_pylist() == [1], name


def invalid(*raw: bytes | None) -> pa.Array:
    return pa.array(raw, pa.binary()).view(pa.string())


NOT_UTF8 = "is not valid UTF-8"
BEYOND = "has a value beyond its type's range"
NO_LIST = "has a null in place of a list of a fixed size"
BAD = invalid(b"good", b"\xff\xfe", b"good")
OVER = pa.Array.from_buffers(
    pa.decimal128(5, 2), 3, [None, pa.array([1, 0, 10**5, 0, 2, 0], pa.int64()).buffers()[1]]
)
PARTLY = pa.array([[1, 2], None, [3, 4]], PAIR)
TWICE = "has a map with a key twice"


def keyed(keys: pa.Array) -> pa.Array:
    """Three maps of four of these keys, of which the second has two."""
    return pa.MapArray.from_arrays([0, 1, 3, 4], keys, pa.array(range(4)))


KEYS = {
    "strings": pa.array(["a", "b", "b", "a"]),
    "halves": pa.array([1.0, 2.0, 2.0, 1.0], pa.float16()),
    "decimals": pa.array([*map(Decimal, ("1.5", "2", "2", "1.5"))], pa.decimal256(38, 2)),
    "structs": pa.array([{"a": n, "b": str(n)} for n in (1, 2, 2, 1)]),
}
REJECTED: dict[str, tuple[pa.Array, str]] = {
    "string": (BAD, NOT_UTF8),
    "string view": (BAD.cast(pa.binary()).cast(pa.binary_view()).view(pa.string_view()), NOT_UTF8),
    "dictionary": (
        pa.DictionaryArray.from_arrays([0, 1, 0], invalid(b"good", b"\xff\xfe")),
        NOT_UTF8,
    ),
    "list of strings": (pa.ListArray.from_arrays([0, 1, 2, 3], BAD), NOT_UTF8),
    "struct of strings": (pa.StructArray.from_arrays([BAD], ["a"]), NOT_UTF8),
    "map of strings": (pa.MapArray.from_arrays([0, 1, 2, 3], ["a", "b", "c"], BAD), NOT_UTF8),
    "keys of a map": (pa.MapArray.from_arrays([0, 1, 2, 3], BAD, [1, 2, 3]), NOT_UTF8),
    "date64 of a part of a day": (stored(pa.date64(), [0, 1, 86_400_000]), BEYOND),
    "date64 beyond date32": (stored(pa.date64(), [0, (1 << 31) * DAY * 1000, 0]), BEYOND),
    "date64 before date32": (stored(pa.date64(), [0, -((1 << 31) + 1) * DAY * 1000, 0]), BEYOND),
    "time32[s]": (stored(pa.time32("s"), [0, DAY, 1]), BEYOND),
    "time32[ms]": (stored(pa.time32("ms"), [0, -1, 1]), BEYOND),
    "time64[us]": (stored(pa.time64("us"), [0, DAY * 10**6, 1]), BEYOND),
    "time64[ns]": (stored(pa.time64("ns"), [0, -1, 1]), BEYOND),
    "timestamp[s]": (stored(pa.timestamp("s"), [0, (1 << 63) // 1000 + 1, 1]), BEYOND),
    "timestamp[s] before": (stored(pa.timestamp("s"), [0, -(1 << 63), 1]), BEYOND),
    "decimal": (OVER, BEYOND),
    "list of decimals": (pa.ListArray.from_arrays([0, 1, 2, 3], OVER), BEYOND),
    "fixed_size_list": (PARTLY, NO_LIST),
    "fixed_size_list in a struct": (pa.StructArray.from_arrays([PARTLY], ["a"]), NO_LIST),
    **{f"map of {name} twice": (keyed(keys), TWICE) for name, keys in KEYS.items()},
    "list of maps": (pa.ListArray.from_arrays([0, 1, 2, 3], keyed(KEYS["strings"])), TWICE),
    "tensor": (extended(pa.fixed_shape_tensor(pa.int64(), [2]), PARTLY.to_pylist()), NO_LIST),
    "null struct": (
        pa.array([{"a": [1, 2]}, None, {"a": [3, 4]}], pa.struct([("a", PAIR)])),
        NO_LIST,
    ),
}
IN_ARROW_ALONE = {name for name in REJECTED if name.startswith("date64")} | {"dictionary"}
"""Parquet has whole days of 32 bits: pyarrow writes others instead; it reads no such dictionary."""


@pytest.mark.parametrize("form", FORMS)
def test_what_a_reader_of_parquet_refuses_is_rejected_alone(tmp_path: Path, form: str) -> None:
    # Kills: a value that is published and cannot be read; a whole file that is called damaged for
    # one value; a list of fixed size with a null, which Arrow itself cannot read from Parquet.
    for name, (array, problem) in REJECTED.items():
        own = {"text": pa.array(["a", "b", "c"]), "x": array}
        if form == "parquet" and name in IN_ARROW_ALONE:
            continue
        try:
            path = write(tmp_path, own, form)
        except pa.ArrowInvalid:
            assert (form, name[:12]) == ("parquet", "timestamp[s]")
            continue
        corpus = Corpus(path, keep=("x",))
        batches = [batch for split in plan(corpus).splits for batch in read(split, corpus)]
        rejects = [(one.row, one.reason) for batch in batches for one in batch.rejects]
        assert rejects == [(1, f"the column 'x' {problem}")], (name, form)
        assert [text for batch in batches for text in batch.texts.to_pylist()] == ["a", "c"]
        kept = pa.concat_arrays([c for b in batches for c in b.columns["x"].chunks])
        assert values(kept) == [value for i, value in enumerate(values(array)) if i != 1], name


ODD = {
    pa.float16(): (0x7E01, 0xFE00, 0xFC01),
    pa.float32(): (0x7FC00001, 0xFFC00000, 0xFF800001),
    pa.float64(): (0x7FF8 << 48 | 0x416E6E61, 0xFFF8 << 48, 0xFFF4 << 48),
}


@pytest.mark.parametrize("kind", ODD, ids=str)
def test_a_nan_is_released_with_the_bits_that_python_writes(
    tmp_path: Path, kind: pa.DataType
) -> None:
    # Kills: bits of a NaN that no reader shows, and a corpus's file holds for each row. NumPy
    # writes 0 / 0 as minus NaN on x86.
    odd, times = floats(kind, *ODD[kind]), pa.array([1, 2, 3], pa.timestamp("ns", "UTC"))
    ours = pa.array([math.nan] * 3, kind)

    def forms(leaf: pa.Array) -> list[pa.Array]:
        inner = pa.StructArray.from_arrays([leaf, times], ["a", "b"])
        lists = pa.FixedSizeListArray.from_arrays(leaf, 1)
        maps = pa.MapArray.from_arrays([0, 1, 2, 3], ["a", "b", "c"], leaf)
        return [leaf, inner, lists, maps, pa.ListArray.from_arrays([0, 1, 1, 3], inner)]

    for given, expected in zip(forms(odd), forms(ours), strict=True):
        assert not is_as_read(pa.chunked_array([given]))
        own = {"text": pa.array(["a", "b", "c"]), "x": given}
        corpus = Corpus(write(tmp_path, own, "stream"), keep=("x",))
        (batch,) = read(plan(corpus).splits[0], corpus)
        (kept,) = batch.columns["x"].chunks
        assert values(kept) == values(expected)
        assert is_as_read(batch.columns["x"])


def test_values_below_a_null_reject_nothing(tmp_path: Path) -> None:
    # Kills: a check of bytes that no row has.
    hidden = pa.StructArray.from_arrays([BAD], ["a"], mask=pa.array([False, True, False]))
    between = pa.ListArray.from_arrays([0, 1, 1, 1], BAD)
    below = pa.ListArray.from_arrays([0, 1, 2, 3], BAD, mask=pa.array([False, True, False]))
    for array in (hidden, between, below):
        path = write(tmp_path, {"text": pa.array(["a", "b", "c"]), "x": array}, "stream")
        corpus = Corpus(path, keep=("x",))
        (batch,) = read(plan(corpus).splits[0], corpus)
        assert (len(batch.rows), batch.rejects) == (3, [])


class Uses(NamedTuple):
    """What may be done with a type: "yes", or the number of the line that refuses it."""

    identifier: str
    user: str
    label: str
    kept: str
    out: str


LINES = (
    "name a column of strings or whole numbers",
    "name a column of strings or numbers",
    "and has no value there, nor in other files; name another column",
    "which not all readers of Parquet know; write it as another type, such as string",
)
FRACTIONS = "has floating-point numbers that are not whole"


def said(corpus: Corpus, key: str) -> str:
    """Whether a column may be used under a key, or which line refuses it."""
    try:
        planned = plan(corpus)
        for split in planned.splits:
            for batch in read(split, corpus):
                if key == "label":
                    as_text(batch.columns["x"])
                elif key != "input.keep":
                    spelled(batch.columns["x"], key, "x")
    except InputError as error:
        if FRACTIONS in str(error):
            return "if whole"
        return f"no ({next(n for n, line in enumerate(LINES, 1) if line in str(error))})"
    return "yes"


@cache
def uses(name: str) -> Uses:
    with tempfile.TemporaryDirectory() as folder:
        texts = pa.array(["a"] * len(TYPES[name]))
        path = write(folder, {"text": texts, "x": TYPES[name]}, "stream")
        kept = said(keeps := Corpus(path, keep=("x",)), "input.keep")
        out = released_type(plan(keeps).schema.field("x").type) if kept == "yes" else ""
        return Uses(
            said(Corpus(path, id="x"), "input.id"),
            said(Corpus(path, also=(("mechanism.user", "x"),)), "mechanism.user"),
            said(Corpus(path, also=(("label", "x"),)), "label"),
            kept,
            out,
        )


def released_type(kind: pa.DataType) -> str:
    """The type that readers of a data file see."""
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"x": pa.nulls(0, kind)}), sink)
    seen = str(pq.ParquetFile(pa.BufferReader(sink.getvalue())).schema_arrow.field("x").type)
    return seen.replace("halffloat", "float16").replace(" ('x')", "")


def table() -> str:
    """The table of all types, as the document has it: a row for types that are used alike."""
    lines = [
        "| type | `input.id` | user | label | kept | comes out as |",
        "|---|---|---|---|---|---|",
    ]
    alike: dict[tuple[str, ...], list[str]] = {}
    for name in TYPES:
        *used, out = uses(name)
        alike.setdefault((*used, "the same" if out == name else cell(out)), []).append(name)
    lines += [f"| {', '.join(names)} | {' | '.join(cells)} |" for cells, names in alike.items()]
    lines += ["", *(f"({number}) `... {line}`" + "  " for number, line in enumerate(LINES, 1))]
    return "\n".join(line.rstrip() if number else line for number, line in enumerate(lines)) + "\n"


def cell(kind: str) -> str:
    return f"`{kind}`" if kind else ""


BEGIN, END = "<!-- types: begin -->\n", "<!-- types: end -->\n"


def test_the_document_says_what_is_so() -> None:
    # Kills: a type that is accepted or refused otherwise than people read.
    written = DOCUMENT.read_text().partition(BEGIN)[2].partition(END)[0]
    assert written == table(), "run this file as its docstring says"


if __name__ == "__main__":
    before, _, rest = DOCUMENT.read_text().partition(BEGIN)
    Path(sys.argv[1]).write_text(before + BEGIN + table() + END + rest.partition(END)[2])
