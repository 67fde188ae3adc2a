#!/usr/bin/env bash
# One column of Polars 2.1.0 keeps pyarrow 25.0.1 from all columns of a Parquet or Arrow file.
#
# Guess: a file with a column of Int128 is read without that column,
# `read_table(path, columns=["text"])`; only the column itself is refused.
# Seen: pyarrow does not open the file ("Integers with more than 64 bits not implemented"), neither
# as Parquet, where the column itself would be bytes, nor as Arrow; Polars reads both columns.
# Met: ids, sums and hashes beyond 64 bits in a column beside those that are needed.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python3 -m venv "$work/env"
"$work/env/bin/pip" install -q polars==2.1.0 pyarrow==25.0.1
"$work/env/bin/python" - "$work" <<'END'
import sys
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

parquet, arrow = (f"{sys.argv[1]}/frame.{form}" for form in ("parquet", "arrow"))
frame = pl.DataFrame({"text": ["a"], "wide": pl.Series([1], dtype=pl.Int128)})
frame.write_parquet(parquet)
frame.write_ipc(arrow)
assert pl.read_parquet(parquet).equals(frame)


def refused(read):
    try:
        read()
    except pa.ArrowNotImplementedError:
        return True
    return False


assert refused(lambda: pq.read_table(parquet, columns=["text"]))
options = pa.ipc.IpcReadOptions(included_fields=[0])
assert refused(lambda: pa.ipc.open_file(arrow, options=options).read_all())
END
