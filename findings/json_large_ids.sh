#!/bin/bash
# pyarrow 25.0.1, datasets 5.2.0, Python 3.11: two ids of 64 bits in JSON Lines become one number.
#
# Guess: a number above 2**63 - 1 is read as uint64, which Arrow has, or refused; a number without a fraction is never read as a
#   floating-point number.
# Seen: `pyarrow.json.read_json` takes the whole column for doubles: 18446744073709551615 and 18446744073709551614 are equal afterwards, and
#   `datasets` hands that on. Polars and DuckDB take wider integers. With an explicit schema of uint64 Arrow reads the ids as they are.
# Met: unsigned hashes as ids of documents or users (xxhash, BigQuery fingerprints): users merge, and a bound on what one user gives holds
#   for the merged ones.
# Exits with another status than 0 if the behaviour changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q pyarrow==25.0.1 datasets==5.2.0 polars==2.1.0 duckdb==2.0.0
cd "$work"
"$work/venv/bin/python" - <<'PROGRAM'
import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.json
from datasets import Dataset, disable_progress_bars

IDS = [2**64 - 1, 2**64 - 2, 5]
with open("ids.jsonl", "w") as file:
    file.writelines(f'{{"id": {each}}}\n' for each in IDS)
disable_progress_bars()
options = pa.json.ParseOptions(explicit_schema=pa.schema([("id", pa.uint64())]))
read = {
    "pyarrow": pa.json.read_json("ids.jsonl")["id"].to_pylist(),
    "datasets": Dataset.from_json("ids.jsonl", cache_dir="cache")["id"][:],
    "pyarrow, with a schema": pa.json.read_json("ids.jsonl", parse_options=options)["id"].to_pylist(),
    "polars": pl.read_ndjson("ids.jsonl")["id"].to_list(),
    "duckdb": [row[0] for row in duckdb.sql("SELECT id FROM 'ids.jsonl'").fetchall()],
}
for name, ids in read.items():
    print(name, ids)
    if name in ("pyarrow", "datasets"):
        assert len(set(ids)) == 2
        assert all(isinstance(each, float) for each in ids)
    else:
        assert ids == IDS
PROGRAM
