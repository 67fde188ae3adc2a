#!/bin/bash
# numpy 2.4.6, Python 3.11: unique values are found many times as fast if their counts are asked for, too.
#
# Guess: `np.unique(x)` does a part of the work of `np.unique(x, return_counts=True)`, so it takes at most as long; since NumPy 2.3 it uses
#   a hash table, which is there to be faster.
# Seen: without counts, integers go through a hash table, and then are sorted: a million distinct int64 take more than ten times as long as
#   with counts, which sorts alone. With a thousand distinct values the table takes half the time of the sort. Floats are sorted in both
#   cases.
# Met: ids, hashes and positions, which are distinct: a check for duplicates by `len(np.unique(ids))` becomes the slowest step after an
#   upgrade. Sorting and comparing neighbours does not change.
# Exits with another status than 0 if the behaviour changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q numpy==2.4.6
cd "$work"
"$work/venv/bin/python" - <<'PROGRAM'
import time

import numpy as np

generator = np.random.default_rng(1)


def seconds(values: np.ndarray, **options) -> float:
    """Processor time of the fastest of five calls."""
    taken = []
    for _ in range(5):
        start = time.process_time()
        np.unique(values, **options)
        taken.append(time.process_time() - start)
    return min(taken)


def ratio(values: np.ndarray) -> float:
    return seconds(values) / seconds(values, return_counts=True)


distinct = generator.integers(0, 2**40, 1_000_000)
found = {
    "distinct integers": ratio(distinct),
    "a thousand integers": ratio(distinct % 1000),
    "distinct floats": ratio(distinct.astype(float)),
}
for name, times in found.items():
    print(f"{name}: {times:.1f} times as long without counts")
assert found["distinct integers"] > 3
assert found["a thousand integers"] < 1.5
assert found["distinct floats"] < 2
PROGRAM
