#!/bin/bash
# pyarrow 25.0.1, Python 3.11: `read_dictionary` reaches strings inside lists, structs and maps, by names that the docs lack.
#
# Guess: `read_dictionary=["words"]` is for flat columns of strings; nested ones are read in full, whatever is asked, or refused.
# Seen: the names of leaves are taken ("words.list.element", "author.name", "fields.key_value.value"), and the values are dictionaries
#   inside the list, struct or map; the name of the column itself, or one that does not exist, changes nothing and is no error.
# Met: lists of words, where text takes most of a reader's memory: repeated words are kept once. A reader of nested strings must then take
#   dictionaries.
# Exits with another status than 0 if the behaviour changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q pyarrow==25.0.1
cd "$work"
"$work/venv/bin/python" - <<'PROGRAM'
import pyarrow as pa
import pyarrow.parquet as pq

table = pa.table(
    {
        "words": [["tide", "boat", "tide"] * 1000] * 20,
        "author": [{"name": "ann"}] * 20,
        "fields": pa.array([[("kind", "log")]] * 20, pa.map_(pa.string(), pa.string())),
    }
)
pq.write_table(table, "nested.parquet")


def read(*names: str) -> pa.Table:
    return pq.read_table("nested.parquet", read_dictionary=list(names))


nested = read("words.list.element", "author.name", "fields.key_value.value")
print(nested.schema)
words, author, fields = nested.schema.types
assert pa.types.is_dictionary(words.value_type)
assert pa.types.is_dictionary(author.field("name").type)
assert pa.types.is_dictionary(fields.item_type)
assert nested.to_pylist() == table.to_pylist()
for name in ("words", "author", "nothing"):
    assert read(name).schema.types == table.schema.types
print(f"{table.nbytes} bytes in full, {nested.nbytes} with dictionaries")
assert nested.nbytes < table.nbytes
PROGRAM
