#!/bin/bash
# hyparquet-writer 0.17.0 and apache-arrow 21.2.0 of npm, pyarrow 25.0.1: what lists, ids and missing texts of JavaScript become in files.
#
# Guess: arrays of arrays are lists in Parquet, as in every other writer; JavaScript's numbers, which are doubles, are doubles or 64-bit
#   integers; null and undefined are null.
# Seen: lists are strings of JSON, which Arrow reads as `arrow.json`. Whole numbers are int32: an id of 2**40 is an error, and leaves an
#   empty file. Arrow in JavaScript writes null as null and undefined as the empty string, in a column of text.
# Met: bags of words (`terms`, `counts`) and corpora that browsers or Node export; a text that was missing becomes a document without words,
#   which is counted and released.
# Exits with another status than 0 if the behaviour changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q pyarrow==25.0.1
cd "$work"
npm install --silent --no-fund --no-audit --ignore-scripts hyparquet-writer@0.17.0 apache-arrow@21.2.0
cat > write.mjs <<'PROGRAM'
import { writeFileSync } from 'node:fs'
import { parquetWriteFile } from 'hyparquet-writer'
import { tableFromArrays, tableToIPC } from 'apache-arrow'

const columns = {
  text: ['a', null, '', undefined],
  counts: [[1, 2], [], null, [3]],
  small: [1, 2, null, 3],
}
const columnData = Object.entries(columns).map(([name, data]) => ({ name, data }))
parquetWriteFile({ filename: 'rows.parquet', columnData })
writeFileSync('rows.arrow', tableToIPC(tableFromArrays({ text: columns.text }), 'file'))
try {
  parquetWriteFile({ filename: 'ids.parquet', columnData: [{ name: 'id', data: [1, 2 ** 40] }] })
  process.exit(1)
} catch (error) {
  console.log(String(error))
}
PROGRAM
node write.mjs
"$work/venv/bin/python" - <<'PROGRAM'
import os

import pyarrow as pa
import pyarrow.parquet as pq

parquet = pq.read_table("rows.parquet")
arrow = pa.ipc.open_file("rows.arrow").read_all()
print(parquet.schema, parquet.to_pydict(), arrow["text"].to_pylist(), sep="\n")
assert str(parquet.schema.field("counts").type) == "extension<arrow.json>"
assert parquet["counts"].to_pylist() == ["[1,2]", "[]", None, "[3]"]
assert parquet.schema.field("small").type == pa.int32()
assert parquet["text"].to_pylist() == ["a", None, "", None]
assert arrow["text"].to_pylist() == ["a", None, "", ""]
assert os.path.getsize("ids.parquet") == 0
PROGRAM
