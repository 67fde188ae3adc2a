#!/bin/bash
# pyiceberg 0.12.0, pyarrow 25.0.1, Python 3.11: rows that a delete keeps are found by the same condition afterwards.
#
# Guess: a condition selects the same rows in `scan` and in `delete`; null is neither in a list nor outside it (as in SQL), so both pass
#   over it, as both do for `!=`.
# Seen: `delete("author not in ('ann', 'bob')")` keeps the row whose author is null, and `scan` of that condition returns that very row,
#   before and after. The scan is by Arrow, where null is in no list, so that "not in" is true of it; the delete has another rule.
# Met: removing the documents of all but consenting authors and checking it by a scan; selections of a corpus by "not in", which take rows
#   without an author that `!=` and SQL engines leave out.
# Exits with another status than 0 if the behaviour changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q "pyiceberg[sql-sqlite,pyarrow]==0.12.0" pyarrow==25.0.1
cd "$work"
"$work/venv/bin/python" - <<'PROGRAM'
import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog

catalog = SqlCatalog("local", uri="sqlite:///catalog.db", warehouse="file://warehouse")
catalog.create_namespace("corpus")
rows = pa.table({"author": ["ann", "bob", "cy", None], "text": ["a", "b", "c", "d"]})


def authors(name: str, condition: str) -> tuple[list, list]:
    """The authors that a scan finds before and after a delete by the same condition."""
    table = catalog.create_table(f"corpus.{name}", schema=rows.schema)
    table.append(rows)
    before = table.scan(row_filter=condition).to_arrow()["author"].to_pylist()
    table.delete(condition)
    return before, table.scan(row_filter=condition).to_arrow()["author"].to_pylist()


not_in = authors("listed", "author not in ('ann', 'bob')")
unequal = authors("unequal", "author != 'ann'")
print("not in:", not_in, "!=:", unequal)
assert not_in == (["cy", None], [None])
assert unequal == (["bob", "cy"], [])
PROGRAM
