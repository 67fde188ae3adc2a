"""Helpers for tests of accounting: rates and noises to draw, and events as the library has them."""

from __future__ import annotations

from fractions import Fraction

import dp_accounting
from hypothesis import strategies as st

ONE = Fraction(1)
DELTA = Fraction(1, 10**6)
rates = st.fractions(Fraction(1, 1000), Fraction(1, 5), max_denominator=1000)
noises = st.fractions(Fraction(1), 20, max_denominator=100)
deltas = st.integers(4, 9).map(lambda digits: Fraction(1, 10**digits))


def events(rate: Fraction, noise: Fraction, steps: int) -> dp_accounting.DpEvent:
    gaussian = dp_accounting.GaussianDpEvent(float(noise))
    sampled = dp_accounting.PoissonSampledDpEvent(float(rate), gaussian)
    return dp_accounting.SelfComposedDpEvent(sampled, steps)
