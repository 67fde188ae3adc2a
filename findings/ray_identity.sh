#!/bin/bash
# ray 2.60.0, pyarrow 25.0.1, Python 3.11: a Ray Data map of batches that returns its batch changes types and values.
#
# Guess: `map_batches(lambda batch: batch)` gives the table back: blocks are Arrow before and after, and types come back as they were.
# Seen: batches are NumPy arrays between. Integers with a null become doubles: 2**60 + 1 loses its last digit, the null is NaN. Lists of
#   int32 become tensors if all of a batch have one length, and pickled Python objects if one is null. Dates become timestamps, and a time
#   zone is lost. What a column is depends on the batch that it was in.
# Met: bags of words (`terms`, `counts`) and ids that pass a Ray stage for encoding; files of pickled objects, which no other tool reads.
#   `batch_format="pyarrow"` keeps all.
# Exits with another status than 0 if the behaviour changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q "ray[data]==2.60.0" pyarrow==25.0.1 pandas==3.1.1 numpy==2.4.6
cd "$work"
"$work/venv/bin/python" - <<'PROGRAM'
import datetime
import logging
import os

os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"
import pyarrow as pa
import ray

ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
ray.data.DataContext.get_current().enable_progress_bars = False
logging.disable(logging.CRITICAL)

zone = pa.timestamp("us", "Europe/Berlin")
lists = pa.list_(pa.int32())
table = pa.table(
    {
        "id": pa.array([2**60 + 1, None], pa.int64()),
        "equal": pa.array([[1, 2], [3, 4]], lists),
        "ragged": pa.array([[1, 2], None], lists),
        "day": pa.array([datetime.date(2026, 1, 2), None]),
        "at": pa.array([1, None], zone),
    }
)


def passed(form: str) -> pa.Table:
    rows = ray.data.from_arrow(table).map_batches(lambda batch: batch, batch_format=form)
    return pa.concat_tables(ray.get(rows.to_arrow_refs()))


kept, changed = passed("pyarrow"), passed("numpy")
print(changed.schema)
assert kept.equals(table)
assert changed.schema.field("id").type == pa.float64()
assert changed["id"][0].as_py() == 2**60 != table["id"][0].as_py()
assert "tensor" in str(changed.schema.field("equal").type).lower()
assert "object" in str(changed.schema.field("ragged").type).lower()
assert pa.types.is_timestamp(changed.schema.field("day").type)
assert changed.schema.field("at").type.tz is None
PROGRAM
