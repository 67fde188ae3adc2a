#!/bin/bash
# diffprivlib 0.6.6, Python 3.11: a private histogram has no count below 0, so that empty bins add up to documents.
#
# Guess: `tools.histogram` adds two-sided noise to each bin: a bin has its count on average, empty ones 0, and sums over bins are about
#   right.
# Seen: counts are cut at 0 (by the mechanism, with no option): at epsilon .1 an empty bin has about 5 on average. A histogram of 10
#   documents over 2,000 bins adds up to more than 9,000.
# Met: histograms over vocabularies, most of whose words a corpus lacks: totals, document lengths and shares of groups of rare words come
#   out far too large, the more so the more words there are.
# Exits with another status than 0 if the behaviour changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q diffprivlib==0.6.6 "scikit-learn<1.6" "numpy<2.5"
cd "$work"
"$work/venv/bin/python" - <<'PROGRAM'
import warnings

import numpy as np
from diffprivlib import tools

warnings.simplefilter("ignore")
counts, _ = tools.histogram(np.zeros(10), epsilon=0.1, bins=2000, range=(-1, 1), random_state=1)
print(f"10 documents: counts from {counts.min()} to {counts.max()}, in all {counts.sum()}")
assert counts.min() == 0
# The mean of two-sided geometric noise cut at 0 is a / (1 - a**2) for a = exp(-.1), 4.99.
assert 9_000 < counts.sum() < 11_000
PROGRAM
