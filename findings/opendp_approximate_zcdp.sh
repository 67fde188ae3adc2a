#!/bin/bash
# opendp 0.16.0, Python 3.11: a measurement with a delta of its own costs a pair of a curve and a delta, not a curve.
#
# Guess: `make_zCDP_to_approxDP(measurement).map(d)` is a privacy curve, of which `epsilon(delta)` is the cost, whatever the measurement is;
#   a delta that was in it before is part of the curve.
# Seen: for zCDP it is; for approximate zCDP, such as a thresholded histogram, it is the pair (curve, delta), and the curve leaves the other
#   delta out. At a total delta of 2e-8, of which the threshold has 1.9e-8, the curve says epsilon 2.80, and 3.06 is true, as
#   `make_fix_delta` returns it.
# Met: vocabularies by thresholded counts: code that unpacked a curve fails, and one that takes the first of the pair understates what a
#   card prints.
# Exits with another status than 0 if the behaviour changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q opendp==0.16.0
cd "$work"
"$work/venv/bin/python" - <<'PROGRAM'
import opendp.prelude as dp

dp.enable_features("contrib")
number = dp.atom_domain(T=int), dp.absolute_distance(T=int)
counts = dp.map_domain(dp.atom_domain(T=str), dp.atom_domain(T=int)), dp.l02inf_distance(number[1])
plain = dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*number, scale=1.0))
thresholded = dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian_threshold(*counts, scale=2.0, threshold=12))

print("Gaussian:", type(plain.map(1)).__name__)
assert plain.map(1).epsilon(1e-6) > 0
cost = thresholded.map((1, 1, 1))
print("with a threshold:", type(cost).__name__, cost)
assert isinstance(cost, tuple)
curve, delta = cost
total = delta + 1e-9
naive = curve.epsilon(total)
true, _ = dp.c.make_fix_delta(thresholded, total).map((1, 1, 1))
print(f"at a delta of {total:.2g} in all: {naive:.3f} by the curve, {true:.3f} fixed")
assert 1e-8 < delta < total
assert naive < true - 0.2
assert abs(curve.epsilon(total - delta) - true) < 1e-6
PROGRAM
