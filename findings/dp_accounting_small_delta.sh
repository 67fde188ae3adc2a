#!/bin/bash
# dp-accounting 0.6.0, Python 3.11: a pessimistic privacy loss distribution gives epsilons below the truth at small deltas.
#
# Guess: with `pessimistic_estimate=True` (the default) losses are rounded up and cut tails count as infinite, so that
#   `get_epsilon_for_delta` is an upper bound at every delta, only a looser one at small deltas.
# Seen: 3,000 pure guarantees of epsilon .02, composed by `self_compose`, cost 8.279 at a delta of 1e-14 by the library; by exact sums the
#   delta of that epsilon is 14 times as large, and the epsilon 8.668.
#   Composition is a Fourier transform in doubles: its rounding, some 1e-16 a composition, is part of the tail, in either direction.
# Met: budgets of thousands of releases at deltas far below 1 / people, and audits that take the optimistic estimate for a lower bound.
# Exits with another status than 0 if the behaviour changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q dp-accounting==0.6.0 "attrs<24"
"$work/venv/bin/python" - <<'PROGRAM'
import math
from decimal import Decimal, getcontext

from dp_accounting.pld.common import DifferentialPrivacyParameters
from dp_accounting.pld.privacy_loss_distribution import from_privacy_parameters

getcontext().prec = 60
EPSILON, TIMES, DELTA = "0.02", 3_000, 1e-14
once = from_privacy_parameters(DifferentialPrivacyParameters(float(EPSILON), 0.0), 1e-4)
composed = once.self_compose(TIMES)
found = composed.get_epsilon_for_delta(DELTA)


def exact(epsilon: float) -> Decimal:
    """The delta of so many randomised responses, whose losses are EPSILON * (2 j - TIMES)."""
    true = 1 / (1 + (-Decimal(EPSILON)).exp())
    total = Decimal(0)
    for j in range(TIMES + 1):
        loss = Decimal(EPSILON) * (2 * j - TIMES)
        if loss > Decimal(epsilon):
            chance = math.comb(TIMES, j) * true**j * (1 - true) ** (TIMES - j)
            total += chance * (1 - (Decimal(epsilon) - loss).exp())
    return total


print(f"epsilon {found:.4f} at {DELTA:g}; the exact delta of it is {exact(found):.3g}")
assert exact(found) > 10 * Decimal(DELTA)
assert exact(8.668) < Decimal(DELTA)
PROGRAM
