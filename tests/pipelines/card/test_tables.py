"""The sizes of row groups, before one is read."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from quietcorpus.pipelines.card import tables as table_files
from quietcorpus.transforms.errors import InputError

LONG, SHORT, ROWS = 10**6, 1, 300


def written(table: pa.Table, rows: int = ROWS) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=rows, compression="zstd")
    return sink.getvalue()


def repeated(numbers: list[int | None], kind: pa.DataType) -> pa.Array:
    """A long and a short entry of a dictionary, which take their length once."""
    entries = pa.array([b"x" * LONG, b"y"], pa.binary()).cast(kind)
    return pa.DictionaryArray.from_arrays(pa.array(numbers, pa.int32()), entries)


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()], ids=str
)
def test_an_entry_counts_as_often_as_it_stands_there(kind: pa.DataType) -> None:
    # Kills: the length of the dictionary alone, the longest entry for every row, one group for all.
    own = [0] * 10 + [1] * 200 + [None] * 90
    content = written(pa.table({"id": range(ROWS), "own": repeated(own, kind)}), 205)
    sizes = list(table_files._sizes(content))
    found = list(table_files._repeated(content, sizes))
    assert found[0] == 10 * LONG + 195 * SHORT
    assert found[1] == 5 * SHORT
    plain = written(
        pa.table({"own": pa.array(["x"] * ROWS, kind)}).cast(pa.schema([("own", kind)]))
    )
    assert list(table_files._repeated(plain, list(table_files._sizes(plain)))) == [ROWS]


def test_values_of_a_fixed_size_count_too() -> None:
    # Kills: an entry of a million bytes that is none of a text.
    entry = pa.array([b"x" * LONG], pa.binary(LONG))
    rows = pa.DictionaryArray.from_arrays(pa.array([0] * ROWS, pa.int32()), entry)
    content = written(pa.table({"own": rows}))
    assert list(table_files._repeated(content, list(table_files._sizes(content)))) == [LONG * ROWS]


FEW = 3  # entries in each place

NESTED = {
    "list": lambda own: pa.ListArray.from_arrays(list(range(0, ROWS + 1, FEW)), own),
    "large list": lambda own: pa.LargeListArray.from_arrays(list(range(0, ROWS + 1, FEW)), own),
    "fixed list": lambda own: pa.FixedSizeListArray.from_arrays(own, FEW),
    "struct": lambda own: pa.StructArray.from_arrays([own, own], ["a", "b"]).slice(0, ROWS // 2),
    "map": lambda own: pa.MapArray.from_arrays(
        list(range(0, ROWS + 1, FEW)), pa.array(range(ROWS)), own
    ),
    "list of structs": lambda own: pa.ListArray.from_arrays(
        list(range(0, ROWS + 1, FEW)), pa.StructArray.from_arrays([own], ["a"])
    ),
}


@pytest.mark.parametrize("nested", NESTED)
def test_entries_within_other_types_count_too(nested: str) -> None:
    # Kills: entries of lists, structs or maps that count once, a struct's first field alone.
    own = repeated([0] * 10 + [1] * 140 + [0] * 10 + [1] * 140, pa.string())
    content = written(pa.table({"own": NESTED[nested](own)}))
    assert list(table_files._repeated(content, list(table_files._sizes(content)))) == [
        20 * LONG + 280 * SHORT
    ]
    entry = pa.array([b"x" * 16], pa.binary(16))
    fixed = pa.DictionaryArray.from_arrays(pa.array([0] * ROWS, pa.int32()), entry)
    content = written(pa.table({"own": NESTED[nested](fixed)}))
    assert list(table_files._repeated(content, list(table_files._sizes(content)))) == [16 * ROWS]


def test_columns_of_one_path_count_both() -> None:
    # Kills: the struct's own texts for those of a column that is called like their path.
    own = repeated([0] * 10 + [1] * 290, pa.string())
    short = repeated([1] * ROWS, pa.string())
    both = {"a.b": short, "a": pa.StructArray.from_arrays([own], ["b"])}
    content = written(pa.table(both))
    (found,) = table_files._repeated(content, list(table_files._sizes(content)))
    assert found == 10 * LONG + 290 * SHORT + ROWS * SHORT


def test_a_small_file_of_long_texts_is_refused_unread() -> None:
    # Kills: for 600 MB in a file of 2 kB, `verify` took 2.1 GiB.
    content = written(pa.table({"own": repeated([0] * ROWS, pa.string())}))
    file = table_files.opened("release/data", content)
    with pytest.raises(InputError, match="release/data: a row group is too large to be read"):
        table_files._check_sizes("release/data", file, None, content)
    content = written(pa.table({"own": repeated([0] * (ROWS // 2), pa.string())}))
    table_files._check_sizes("release/data", table_files.opened("", content), None, content)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_texts_by_shared_beginnings_are_refused_unread(version: str) -> None:
    # Kills: a file of 500 bytes, whose pages state 1 MB, that took a gigabyte.
    table, sink = pa.table({"own": ["x" * LONG] * ROWS}), io.BytesIO()
    encoding = {"own": "DELTA_BYTE_ARRAY"}
    pq.write_table(
        table,
        sink,
        compression="zstd",
        use_dictionary=False,
        column_encoding=encoding,
        data_page_version=version,
    )
    content = sink.getvalue()
    with pytest.raises(InputError, match="release/data: a row group is too large to be read"):
        table_files._check_sizes(
            "release/data", table_files.opened("release/data", content), None, content
        )
