#!/bin/bash
# datasets 5.2.0, pyarrow 25.0.1, Python 3.11: a field that the first row lacks is dropped from all rows.
#
# Guess: rows with different fields become a table with all fields and nulls, as by `load_dataset("json", ...)` of the same rows; or they
#   are refused.
# Seen: `Dataset.from_list`, `from_generator` and `map` take the fields of the first row. What later rows have besides is lost without a
#   word; a field that later rows lack is null, or by `map` a KeyError. A file of JSON Lines has all fields.
# Met: corpora made from records with optional fields (author, label, consent): whether any record has them depends on which one comes
#   first.
# Exits with another status than 0 if the behaviour changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q datasets==5.2.0 pyarrow==25.0.1
cd "$work"
"$work/venv/bin/python" - <<'PROGRAM'
import json
import logging
import sys

import datasets

datasets.disable_progress_bars()
logging.disable(logging.CRITICAL)
records = [{"text": "a"}, {"text": "b", "author": "ann"}]
with open("records.jsonl", "w") as file:
    file.writelines(json.dumps(record) + "\n" for record in records)


def grown(row: dict) -> dict:
    return {"author": "ann"} if row["text"] == "b" else {}


texts = datasets.Dataset.from_list([{"text": "a"}, {"text": "b"}])
made = {
    "from_list": datasets.Dataset.from_list(records),
    "from_generator": datasets.Dataset.from_generator(lambda: iter(records), cache_dir="cache"),
    "map": texts.map(grown),
    "json": datasets.load_dataset("json", data_files="records.jsonl", split="train", cache_dir="cache"),
}
for name, rows in made.items():
    print(name, rows.to_list())
    assert ("author" in rows.column_names) == (name == "json")
try:
    texts.map(lambda row: {"author": "ann"} if row["text"] == "a" else {})
except KeyError as error:
    print("a later row without it:", error)
else:
    sys.exit("map fills in what a later row lacks")
PROGRAM
