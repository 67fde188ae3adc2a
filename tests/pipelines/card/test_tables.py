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


def test_a_small_file_of_long_texts_is_refused_unread() -> None:
    # Kills: for 600 MB in a file of 2 kB, `verify` took 2.1 GiB.
    content = written(pa.table({"own": repeated([0] * ROWS, pa.string())}))
    file = table_files.opened("release/data", content)
    with pytest.raises(InputError, match="release/data: a row group is too large to be read"):
        table_files._check_sizes("release/data", file, None, content)
    content = written(pa.table({"own": repeated([0] * (ROWS // 2), pa.string())}))
    table_files._check_sizes("release/data", table_files.opened("", content), None, content)
