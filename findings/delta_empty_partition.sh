#!/bin/bash
# deltalake 1.6.6, pyarrow 25.0.1, Python 3.11: a Delta table gives an empty text back as null if it is partitioned by it.
#
# Guess: "" and null are two values of a text column, in a partition column as in others; the folders differ (`p=` and
#   `p=__HIVE_DEFAULT_PARTITION__`), so both can be told apart.
# Seen: both folders are there, and both are read as null: Delta's log writes values of partitions as strings, and takes the empty one for
#   null. In a column that is not a partition, "" stays.
# Met: corpora partitioned by author, product or label, where "" is a group of its own: after one copy its documents have no group, or are
#   joined with those that never had one. Groups are units of privacy in some releases.
# Exits with another status than 0 if the behaviour changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q deltalake==1.6.6 pyarrow==25.0.1
cd "$work"
"$work/venv/bin/python" - <<'PROGRAM'
import os

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

table = pa.table({"author": ["", None, "ann"], "row": [1, 2, 3]})


def read_back(path: str, **options) -> dict:
    write_deltalake(path, table, **options)
    rows = DeltaTable(path).to_pyarrow_table().to_pylist()
    return {row["row"]: row["author"] for row in rows}


plain, by_author = read_back("plain"), read_back("parts", partition_by=["author"])
print(plain, by_author, sorted(os.listdir("parts")))
assert plain == {1: "", 2: None, 3: "ann"}
assert by_author == {1: None, 2: None, 3: "ann"}
assert {"author=", "author=__HIVE_DEFAULT_PARTITION__"} < set(os.listdir("parts"))
PROGRAM
