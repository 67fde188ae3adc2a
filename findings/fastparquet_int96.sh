#!/usr/bin/env bash
# fastparquet 2026.9.0 with pandas 3.1.1 writes other dates than it is given: times="int96".
#
# Guess: `fastparquet.write(..., times="int96")` and a reading give the moments back, as they do
# with pandas 2.3.3.
# Seen: pandas 3 keeps the moments in microseconds; fastparquet takes the numbers for nanoseconds.
# 2 January 2020 is read as 19 January 1970, by fastparquet and by pyarrow, and nothing is said.
# Met: files for Hive, Impala and old Spark, whose timestamps are INT96.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat > "$work/dates.py" <<'END'
import sys
import fastparquet
import pandas as pd

path, given = sys.argv[1], pd.Timestamp("2020-01-02 03:04:05")
fastparquet.write(path, pd.DataFrame({"at": [given]}), times="int96")
print(fastparquet.ParquetFile(path).to_pandas()["at"][0].date())
END

for pandas in 2.3.3 3.1.1; do
    python3 -m venv "$work/$pandas"
    "$work/$pandas/bin/pip" install -q "pandas==$pandas" fastparquet==2026.9.0
    "$work/$pandas/bin/python" "$work/dates.py" "$work/$pandas.parquet" > "$work/$pandas.txt"
done
[ "$(cat "$work/2.3.3.txt")" = 2020-01-02 ]
[ "$(cat "$work/3.1.1.txt")" = 1970-01-19 ]
