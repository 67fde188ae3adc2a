#!/bin/bash
# datasketches 5.2.0, Python 3.11: sketches that count distinct values do not count the empty string, and take True for 1.
#
# Guess: an update is an update: "" is a value like any other, so that a sketch of "a" and "" estimates 2; 1, 1.0 and True are equal in
#   Python and count once.
# Seen: `update("")` does nothing in HLL, theta and CPC sketches, and in a count-min sketch its count stays 0. Of numbers, the integer and
#   the float are two values; the integer and the boolean are one.
# Met: counting distinct texts, authors or cells with sketches before a release: an empty text is a document, and the estimate is short by
#   it; sums of a count-min sketch do not agree with the number of updates.
# Exits with another status than 0 if the behaviour changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q datasketches==5.2.0
cd "$work"
"$work/venv/bin/python" - <<'PROGRAM'
import datasketches

makers = {
    "hll": lambda: datasketches.hll_sketch(12),
    "theta": lambda: datasketches.update_theta_sketch(12),
    "cpc": lambda: datasketches.cpc_sketch(11),
}
expected = {("a", ""): 1, ("",): 0, (1, 1.0): 2, (1, "1"): 2, (0.0, -0.0): 1, ("a", "b"): 2}
for name, make in makers.items():
    found = {}
    for values in expected:
        sketch = make()
        for value in values:
            sketch.update(value)
        found[values] = round(sketch.get_estimate())
    sketch = make()
    sketch.update(1)
    sketch.update(True)
    print(name, found, "1 and True:", round(sketch.get_estimate()))
    assert found == expected
    assert round(sketch.get_estimate()) == 1
counts = datasketches.count_min_sketch(3, 100)
counts.update("", 5)
counts.update("a", 5)
print("count-min:", counts.get_estimate(""), counts.get_estimate("a"), counts.total_weight)
assert (counts.get_estimate(""), counts.get_estimate("a")) == (0, 5)
PROGRAM
