#!/usr/bin/env bash
# DuckDB 2.0.0 writes arrays with a NULL to Parquet, and pyarrow 25.0.1 cannot read the column.
#
# Guess: an array of a fixed size that is NULL is a null list in the file, as a NULL of the type
# INTEGER[] is, and every reader has it as such.
# Seen: pyarrow raises ArrowInvalid, "Length spanned by list offsets larger than values array":
# the file has as many entries for the NULL as the array has items. DuckDB and Polars read it.
# Met: a column of embeddings, FLOAT[384], of which some are missing.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python3 -m venv "$work/env"
"$work/env/bin/pip" install -q duckdb==2.0.0 pyarrow==25.0.1
"$work/env/bin/python" - "$work" <<'END'
import sys
import duckdb
import pyarrow as pa
import pyarrow.parquet as pq


def written(kind):
    path = f"{sys.argv[1]}/{kind}.parquet"
    value = f"CASE WHEN i % 2 = 0 THEN [1, 2]::{kind} END"
    duckdb.sql(f"COPY (SELECT {value} AS x FROM range(4) t(i)) TO '{path}'")
    return path


lists, arrays = written("INTEGER[]"), written("INTEGER[2]")
expected = [[1, 2], None, [1, 2], None]
assert pq.read_table(lists)["x"].to_pylist() == expected
assert [row[0] for row in duckdb.sql(f"FROM '{arrays}'").fetchall()] in (
    expected,
    [None if one is None else tuple(one) for one in expected],
)
try:
    pq.read_table(arrays)
except pa.ArrowInvalid as error:
    assert "larger than values array" in str(error)
else:
    sys.exit("pyarrow reads the file: the behaviour has changed")
END
