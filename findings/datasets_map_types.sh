#!/bin/bash
# datasets 5.2.0, pyarrow 25.0.1, Python 3.11: strings that `map` puts in a column of integers become integers again.
#
# Guess: the function of `map` decides what a column is: one that returns {"code": "00007"} makes "code" a column of strings, whatever it
#   was before, as it does under a new name.
# Seen: the new values are cast to the old type if all of them can be: "00007" is stored as 7, True as 1, and the column stays int64. One
#   value that is no number makes all strings, unless it comes in a later batch: then `map` fails there. Under a new name the strings stay.
# Met: keys, postal codes and hashes that are formatted in place before a release (`f"{id:05d}"`): the files have bare numbers. Return a new
#   name, or pass `features`.
# Exits with another status than 0 if the behaviour changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q datasets==5.2.0 pyarrow==25.0.1
cd "$work"
"$work/venv/bin/python" - <<'PROGRAM'
import logging
import sys

import datasets

datasets.disable_progress_bars()
logging.disable(logging.CRITICAL)
rows = datasets.Dataset.from_dict({"code": [7, 12]})


def mapped(function, **options) -> datasets.Dataset:
    return rows.map(function, load_from_cache_file=False, **options)


padded = mapped(lambda row: {"code": f"{row['code']:05d}"})
renamed = mapped(lambda row: {"text": f"{row['code']:05d}"})
mixed = mapped(lambda row: {"code": f"{row['code']:05d}" if row["code"] == 7 else "none"})
truth = mapped(lambda row: {"code": row["code"] > 10})
print(padded["code"][:], renamed["text"][:], mixed["code"][:], truth["code"][:])
assert padded["code"][:] == [7, 12]
assert renamed["text"][:] == ["00007", "00012"]
assert mixed["code"][:] == ["00007", "none"]
assert truth["code"][:] == [0, 1] and padded.features == truth.features == rows.features
try:
    mapped(lambda row: {"code": f"{row['code']:05d}" if row["code"] == 7 else "none"}, writer_batch_size=1)
except Exception as error:
    print(type(error).__name__, error)
else:
    sys.exit("a string in a later batch is taken")
PROGRAM
