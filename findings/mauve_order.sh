#!/bin/bash
# mauve-text 0.4.0, faiss-cpu 1.15.1, Python 3.11: MAUVE depends on the order of the texts, on which side is first, and on a shift of all
#   features.
#
# Guess: a divergence of two sets: the order of rows is irrelevant, p and q can be exchanged (the curve is traced in both directions), and
#   two samples of one distribution score near 1.
# Seen: two samples of Gaussians that are half a deviation apart score .10; exchanged .07; with the rows of both reversed .13. Rows are
#   scaled to unit length first, so that the same vector added to all rows gives .96. Two samples of one distribution score .94 with the 50
#   clusters that 500 texts have by default, and .40 with 250 (`num_buckets`).
# Met: comparing released or synthetic texts with private ones: differences of a few hundredths between runs are read as quality, and
#   encoders whose vectors have a large common part score high whatever the texts are.
# Exits with another status than 0 if the behaviour changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q mauve-text==0.4.0 faiss-cpu==1.15.1 scikit-learn==1.9.1 numpy==2.4.6
cd "$work"
"$work/venv/bin/python" - <<'PROGRAM'
import os

import mauve
import numpy as np

generator = np.random.default_rng(1)


def drawn(rows: int, shift: float = 0.0) -> np.ndarray:
    return (generator.normal(size=(rows, 32)) + shift).astype(np.float32)


def score(p: np.ndarray, q: np.ndarray, **options) -> float:
    return float(mauve.compute_mauve(p_features=p, q_features=q, verbose=False, **options).mauve)


os.environ["OMP_NUM_THREADS"] = "1"
one, same, other = drawn(500), drawn(500), drawn(500, 0.5)
found = {
    "apart": score(one, other),
    "exchanged": score(other, one),
    "reversed": score(one[::-1].copy(), other[::-1].copy()),
    "both shifted": score(one + 100, other + 100),
    "one distribution, 500": score(one, same),
    "one distribution, 250 clusters": score(one, same, num_buckets=250),
}
for name, value in found.items():
    print(f"{name}: {value:.3f}")
assert score(one, other) == found["apart"]
assert abs(found["exchanged"] - found["apart"]) > 0.01
assert abs(found["reversed"] - found["apart"]) > 0.005
assert found["both shifted"] > 0.8 > 0.3 > found["apart"]
assert found["one distribution, 500"] > 0.85
assert found["one distribution, 250 clusters"] < 0.7
PROGRAM
