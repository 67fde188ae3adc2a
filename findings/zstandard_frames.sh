#!/bin/bash
# zstandard 0.25.0, Python 3.11: three of six ways to decompress give only the first part of an appended file, and no error.
#
# Guess: a .zst file that was made by appending, or by a parallel compressor, is several frames, and that is valid: what reads it gives all
#   of it, as gzip's readers do; or says that something follows.
# Seen: `open`, `stream_reader` and `copy_stream` give all; `decompress`, `decompressobj` and `read_to_iter` of the same object end after
#   the first frame, without a word.
# Met: logs and corpora in JSON Lines that grow by appending: a count of documents is 60 % of the truth, and everything after it is fine.
#   pandas, pyarrow, Polars and fsspec read all frames.
# Exits with another status than 0 if the behaviour changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q zstandard==0.25.0
cd "$work"
"$work/venv/bin/python" - <<'PROGRAM'
import io

import zstandard

one = b"".join(b'{"text": "%d"}\n' % number for number in range(600))
other = b"".join(b'{"text": "%d"}\n' % number for number in range(600, 1000))
compressor = zstandard.ZstdCompressor()
data = compressor.compress(one) + compressor.compress(other)
reader = zstandard.ZstdDecompressor()


def copied() -> bytes:
    target = io.BytesIO()
    reader.copy_stream(io.BytesIO(data), target)
    return target.getvalue()


ways = {
    "open": lambda: zstandard.open(io.BytesIO(data), "rb").read(),
    "copy_stream": copied,
    "decompress": lambda: reader.decompress(data),
    "decompressobj": lambda: reader.decompressobj().decompress(data),
    "read_to_iter": lambda: b"".join(reader.read_to_iter(data)),
    "stream_reader": lambda: reader.stream_reader(io.BytesIO(data)).read(),
}
rows = {name: way().count(b"\n") for name, way in ways.items()}
print(rows)
assert {name for name, number in rows.items() if number == 1000} == {"open", "copy_stream", "stream_reader"}
assert set(rows.values()) == {600, 1000}
PROGRAM
