#!/bin/bash
# pyiceberg 0.12.0, pyarrow 25.0.1, Python 3.11: two appends of text, each fine, make a table that cannot be scanned.
#
# Guess: Iceberg has one type of string. Arrow's string, large_string and string_view are written as it, and a scan gives one type for all
#   files.
# Seen: each file keeps the Arrow type of its writer, and a scan returns it: a table of views comes back as views, which cannot be filtered
#   ("no kernel"). After an append of string_view to a table of string, `scan().to_arrow()` raises ArrowTypeError; string and large_string
#   do mix.
# Met: daily appends where one job moved to Polars or Vortex, whose strings are views: yesterday's corpus cannot be read from the day of the
#   change on. Cast before appending.
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


def table_of(name: str, *types: pa.DataType):
    table = catalog.create_table(f"corpus.{name}", schema=pa.schema([("text", pa.string())]))
    for number, kind in enumerate(types):
        table.append(pa.table({"text": pa.array([f"text {number}"], kind)}))
    return table


large = table_of("large", pa.string(), pa.large_string()).scan().to_arrow()
print(large.schema.field("text").type, large.num_rows)
assert large.num_rows == 2
views = table_of("views", pa.string_view())
assert views.scan().to_arrow().schema.field("text").type == pa.string_view()
try:
    views.scan(row_filter="text = 'text 0'").to_arrow()
except pa.ArrowNotImplementedError as error:
    print("filtered:", error)
else:
    raise SystemExit("views can be filtered")
try:
    table_of("mixed", pa.string(), pa.string_view()).scan().to_arrow()
except pa.ArrowTypeError as error:
    print("mixed:", error)
else:
    raise SystemExit("a table of strings and views can be scanned")
PROGRAM
