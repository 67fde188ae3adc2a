#!/bin/bash
# opake-auditing 0.16.1, Python 3.11: one-run audits report an epsilon above the truth far more often than their significance.
#
# Guess: `one_run(...).eps_delta().epsilon_at(delta=..., significance=.05)`, an "epsilon lower bound at the given
#   (delta, significance)", is above 0 in at most 5 % of audits of a mechanism whose output does not depend on the coins (epsilon 0).
# Seen: in 39 % of 300 audits of 1,000 canaries. By its source, the threshold on the scores is the one with the most right guesses on the
#   same coins that the bound is then computed from, without a correction; with a threshold fixed before (0), 4 % were above 0.
# Met: canary audits whose result "epsilon is at least .1" is read as a leak; users must fix `threshold` beforehand.
# Exits with another status than 0 if the behaviour changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q opake-auditing==0.16.1
"$work/venv/bin/python" - <<'PROGRAM'
import numpy as np
import opake.auditing as auditing
import torch
from opake.random import key

CANARIES, AUDITS = 1000, 300
generator = np.random.default_rng(1)
data = torch.utils.data.TensorDataset(torch.zeros(CANARIES))
chosen = fixed = 0
for number in range(AUDITS):
    coins = auditing.coin_flip(data, num_canaries=CANARIES, key=key(number))
    scores = auditing.canary_scores(
        generator.standard_normal(CANARIES), canary_indices=coins.canary_indices
    )
    bound = auditing.one_run(scores, coin_flip=coins).eps_delta()
    chosen += bound.epsilon_at(delta=1e-5, significance=0.05) > 0
    fixed += bound.epsilon_at(delta=1e-5, significance=0.05, threshold=0.0) > 0
print(f"above 0 in {chosen / AUDITS:.0%} of audits, with a threshold fixed before in {fixed / AUDITS:.0%}")
# An audit that errs as stated is above 0 in more than 12 % of 300 runs with a chance below 1e-6.
assert chosen > 0.12 * AUDITS
assert fixed < 0.12 * AUDITS
PROGRAM
