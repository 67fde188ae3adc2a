#!/bin/bash
# usearch 2.26.6, Python 3.11: a search that finds too few neighbours answers with key 0, which is a real key.
#
# Guess: a batch that asks for more neighbours than the index has is refused (hnswlib), or its free places have an impossible key (FAISS:
#   -1).
# Seen: `search` of several queries returns full rows of keys: the free places have key 0 and the distance NaN. Key 0 may belong to another
#   item, or to none, because it was removed. Only `counts`, an array beside `keys`, has the number of places that mean something.
# Met: deduplication and nearest words over small or filtered indexes; `keys` taken as an array makes item 0 a neighbour of every query.
# Exits with another status than 0 if the behaviour changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q usearch==2.26.6 numpy==2.4.6
cd "$work"
"$work/venv/bin/python" - <<'PROGRAM'
import numpy as np
from usearch.index import Index

generator = np.random.default_rng(1)
vectors = generator.normal(size=(6, 16)).astype(np.float32)
index = Index(ndim=16, metric="cos", dtype="f32")
index.add(np.arange(6), vectors)
index.remove(0)
found = index.search(vectors[1:3], 8)
print(found.keys, found.distances, found.counts, sep="\n")
assert (found.counts == 5).all()
assert (found.keys[:, 5:] == 0).all()
assert np.isnan(found.distances[:, 5:]).all()
assert 0 not in index
PROGRAM
