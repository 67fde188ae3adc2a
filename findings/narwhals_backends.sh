#!/bin/bash
# narwhals 2.29.0 over pandas 3.1.1, Polars 2.1.0, pyarrow 25.0.1 and DuckDB 2.0.0: one expression, different rows.
#
# Guess: narwhals gives data frames one meaning, Polars': where a library differs, it adapts, and documents the rest. A filter on text has
#   the same rows everywhere.
# Seen: `col("text") != "a"` keeps nulls on pandas and on no other. `str.contains(r"\w\w")` finds Greek words on pandas and Polars, and not
#   on pyarrow and DuckDB (ASCII alone). `strip_chars()` leaves a no-break space there, `to_uppercase` of "ß" is "SS" on Polars alone, and
#   `round` of .5 is 0 on two and 1 on two.
# Met: preparing a corpus by a library that takes any frame: which documents are in it, and what their words are, depends on what the caller
#   passed.
# Exits with another status than 0 if the behaviour changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q narwhals==2.29.0 pandas==3.1.1 polars==2.1.0 pyarrow==25.0.1 duckdb==2.0.0
cd "$work"
"$work/venv/bin/python" - <<'PROGRAM'
import duckdb
import narwhals as nw
import pandas as pd
import polars as pl
import pyarrow as pa

data = {"row": [1, 2, 3], "text": ["a", None, "ΟΔΟΣ ß\u00a0"]}
connection = duckdb.connect()
frames = {
    "pandas": pd.DataFrame(data),
    "polars": pl.DataFrame(data),
    "pyarrow": pa.table(data),
    "duckdb": connection.from_arrow(pa.table(data)),
}
text = nw.col("text")


def asked(name: str, question) -> dict[str, list]:
    answers = {}
    for library, frame in frames.items():
        found = question(nw.from_native(frame).lazy()).collect("pyarrow")
        answers[library] = found[found.columns[0]].to_list()
    print(name, answers)
    return answers


unequal = asked("!=", lambda frame: frame.filter(text != "a").select("row"))
assert unequal == {"pandas": [2, 3], "polars": [3], "pyarrow": [3], "duckdb": [3]}
words = asked("contains", lambda frame: frame.filter(text.str.contains(r"\w\w")).select("row"))
assert words == {"pandas": [3], "polars": [3], "pyarrow": [], "duckdb": []}
bare = asked("strip", lambda frame: frame.filter(nw.col("row") == 3).select(text.str.strip_chars().str.len_chars()))
assert {library: int(length) for library, (length,) in bare.items()} == {
    "pandas": 6, "polars": 6, "pyarrow": 7, "duckdb": 7,
}
upper = asked("upper", lambda frame: frame.filter(nw.col("row") == 3).select(text.str.to_uppercase()))
assert {library for library, (value,) in upper.items() if "SS" in value} == {"polars"}
halves = asked("round", lambda frame: frame.filter(nw.col("row") == 1).select((nw.col("row") / 2).round()))
assert halves == {"pandas": [0.0], "polars": [0.0], "pyarrow": [1.0], "duckdb": [1.0]}
PROGRAM
