#!/bin/bash
# deltalake 1.6.6, pyarrow 25.0.1, Python 3.11: an append to a Delta table changes numbers to fit the column, and cuts fractions.
#
# Guess: Delta enforces the schema on writing: rows of another type are refused, as Lance refuses them, until one asks for a merge of
#   schemas.
# Seen: 2.7 appended to a column of int64 is stored as 2, and "2" as 2; 7 in a column of strings becomes "7". Nothing is said, although
#   `schema_mode` was not given. Only a missing column, or a number that is too large for a smaller integer, is refused; so is 200 of uint8
#   in a new table, since Delta's byte is signed.
# Met: weights, scores or noisy values appended to a table that once began with whole numbers; ids that are numbers in one export and
#   strings in another.
# Exits with another status than 0 if the behaviour changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q deltalake==1.6.6 pyarrow==25.0.1
cd "$work"
"$work/venv/bin/python" - <<'PROGRAM'
import shutil

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake


def appended(first: pa.Array, second: pa.Array) -> object:
    """The value that is read of the second append, or the name of the error."""
    shutil.rmtree("table", ignore_errors=True)
    write_deltalake("table", pa.table({"value": first, "row": [1]}))
    try:
        write_deltalake("table", pa.table({"value": second, "row": [2]}), mode="append")
    except Exception as error:
        return type(error).__name__
    rows = DeltaTable("table").to_pyarrow_table().to_pylist()
    return next(row["value"] for row in rows if row["row"] == 2)


whole = pa.array([1])
found = [
    appended(whole, pa.array([2.7])),
    appended(whole, pa.array(["2"])),
    appended(pa.array(["a"]), pa.array([7])),
]
print(found)
assert found == [2, 2, "7"]
refused = appended(pa.array([1], pa.int32()), pa.array([2**40]))
print(refused)
assert isinstance(refused, str)
PROGRAM
