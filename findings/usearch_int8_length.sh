#!/bin/bash
# usearch 2.26.6, Python 3.11: an index of int8 forgets the lengths of vectors, for Euclidean distances and inner products too.
#
# Guess: `dtype="i8"` rounds each number to one of 256 steps. Distances of `l2sq` are then off by a percent or so, and numbers beyond the
#   range are cut or refused; `f16` and `e4m3` do the former.
# Seen: each vector is divided by its own norm before rounding, whatever the metric is. (.1, 0), (1, 0) and (10, 0) are stored as one
#   vector, at distance 0 from one another; distances are of directions, in units of 1/127. `f32`, `bf16`, `f16` and `e4m3` keep the
#   lengths.
# Met: quantised indexes of noisy sums, of word vectors whose length carries frequency, and of maximum inner product search: the longest
#   vectors are no longer first.
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

vectors = np.array([[0.1, 0, 0, 0], [1, 0, 0, 0], [10, 0, 0, 0], [0, 1, 0, 0]], np.float32)


def distances(metric: str, dtype: str) -> list[float]:
    """Distances from the second vector, by key."""
    index = Index(ndim=4, metric=metric, dtype=dtype)
    index.add(np.arange(4), vectors)
    found = index.search(vectors[1], 4)
    return found.distances[np.argsort(found.keys)].tolist()


for dtype in ("f32", "bf16", "f16", "e4m3"):
    near = np.array(distances("l2sq", dtype))
    print(dtype, near)
    assert np.allclose(near, [0.81, 0, 81, 2], rtol=0.05)
    assert np.argmin(distances("ip", dtype)) == 2
print("i8", distances("l2sq", "i8"), distances("ip", "i8"))
assert distances("l2sq", "i8")[:3] == [0, 0, 0]
assert distances("l2sq", "i8")[3] == 2 * 127**2
assert len(set(distances("ip", "i8")[:3])) == 1
PROGRAM
