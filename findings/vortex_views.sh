#!/bin/bash
# vortex-data 0.93.0, pyarrow 25.0.1, Python 3.11: all text of a Vortex file is of a type that Arrow cannot compute with.
#
# Guess: a column of strings comes back as strings, a dictionary as a dictionary, as from Parquet or Lance; and what Arrow reads, Arrow can
#   filter and sort.
# Seen: string, large_string and dictionaries come back as string_view. `take`, `filter`, `sort_by`, `group_by`, a comparison and
#   `utf8_lower` raise ArrowNotImplementedError or ArrowTypeError, and `csv.write_csv` refuses them; `cast(pa.string())`, `unique` and
#   writing Parquet work.
# Met: corpora in new columnar formats that are read through Arrow: the program that filtered Parquet by an id stops at its first step. Cast
#   on reading.
# Exits with another status than 0 if the behaviour changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q vortex-data==0.93.0 pyarrow==25.0.1
cd "$work"
"$work/venv/bin/python" - <<'PROGRAM'
import pyarrow as pa
import pyarrow.compute as pc
import vortex

strings = ["b", None, "a"]
written = pa.table(
    {
        "text": pa.array(strings),
        "large": pa.array(strings, pa.large_string()),
        "dictionary": pa.array(strings).dictionary_encode(),
    }
)
vortex.io.write(written, "corpus.vortex")
read = vortex.open("corpus.vortex").to_arrow().read_all()
print(read.schema)
assert read.schema.types == [pa.string_view()] * 3
assert read.to_pylist() == written.to_pylist()
steps = {
    "take": lambda table: table.take([0, 1]),
    "filter": lambda table: table.filter(pc.field("text") == "a"),
    "sort": lambda table: table.sort_by("text"),
    "group": lambda table: table.group_by("text").aggregate([("text", "count")]),
    "lower": lambda table: pc.utf8_lower(table["text"]),
}
for name, step in steps.items():
    step(written)
    step(read.cast(pa.schema([(each, pa.string()) for each in read.column_names])))
    try:
        step(read)
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        print(f"{name}: {error}")
    else:
        raise SystemExit(f"{name} takes views")
PROGRAM
