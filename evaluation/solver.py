"""The search for the largest epsilon that hides words as well as demanded, with a confidence."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction

import numpy as np

from .calibration import Run
from .demands import Demand, Design, Validation, check, validate
from .simulation import Simulator
from .tallies import child

_RANGE = (1e-4, 1e6)
_TOLERANCE = 1.005
_STEP = 0.98
_ATTEMPTS = 10
TRIALS = 3 + math.ceil(math.log2(math.log(_RANGE[1] / _RANGE[0]) / math.log(_TOLERANCE)))
"""The number of epsilons that are tried if the first validation is passed."""


@dataclass(frozen=True)
class Solution:
    """The validations in their order; the last one was passed."""

    confidence: float
    validations: tuple[Validation, ...]

    @property
    def epsilon(self) -> Fraction:
        """Return the epsilon that solves the demands."""
        return self.validations[-1].epsilon


def solve(
    simulator: Simulator,
    demands: Sequence[Demand],
    design: Design,
    confidence: float,
    seed: np.random.SeedSequence,
    run: Run = map,
) -> Solution:
    """Find the largest epsilon, and so the least noise, that is shown to meet all demands.

    It is found by bisection on a planning set of words and draws (on a logarithmic scale, to half a
    percent), rounded down to three digits, and validated on fresh words and draws. While that
    fails, epsilon is lowered by 2 %, then by 4 %, by 6 % and so on, and validated afresh. The i-th
    validation has the level (1 - confidence) / 2^i, and its epsilon depends on the planning set and
    i alone. The epsilon that is returned therefore fails to meet all demands with a probability of
    at most 1 - confidence (the sum of the levels), whatever planning did. That it is the *largest*
    such epsilon is not claimed with a confidence: it is a little lower.

    Raises:
        ValueError: a number is out of range; so few words or draws could show nothing; no
            epsilon from 1e-4 to 1e6 is enough noise, or all of them are; or ten
            validations failed.
    """
    level = (1 - confidence) / 2
    check(demands, design, simulator.size, level)

    def planned(epsilon: float) -> Validation:
        return validate(simulator, demands, Fraction(epsilon), design, level, child(seed, 0), run)

    epsilon = _bisect(planned)
    validations: list[Validation] = []
    for attempt in range(_ATTEMPTS):
        epsilon *= _STEP**attempt
        validations.append(
            validate(
                simulator,
                demands,
                _round_down(epsilon),
                design,
                level / 2**attempt,
                child(seed, 1 + attempt),
                run,
            )
        )
        if validations[-1].met:
            return Solution(confidence, tuple(validations))
    raise ValueError(
        f"{_ATTEMPTS} epsilons from {float(validations[0].epsilon):g} down to "
        f"{float(validations[-1].epsilon):g} failed on fresh words: {_failures(validations[-1])}; "
        "take more words or draws"
    )


def _bisect(planned: Callable[[float], Validation]) -> float:
    """Find the largest epsilon that passes on the planning set, to the tolerance."""
    low, high = _RANGE
    lowest = planned(low)
    if not lowest.met:
        raise ValueError(
            f"no epsilon is small enough: even at {low:g}, {_failures(lowest)}; ask for less"
        )
    if planned(high).met:
        raise ValueError(
            f"every epsilon up to {high:g} meets the demands: they ask for nothing of these words"
        )
    while high / low > _TOLERANCE:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if planned(middle).met else (low, middle)
    return low


def _failures(validation: Validation) -> str:
    return " and ".join(
        f"{verdict.demand} holds for {verdict.certified} of {verdict.words} words (share at least "
        f"{verdict.at_least:.4f})"
        for verdict in validation.verdicts
        if not verdict.met
    )


def _round_down(value: float) -> Fraction:
    """Round down to three significant digits."""
    return Fraction(Context(prec=3, rounding=ROUND_FLOOR).create_decimal(Decimal(value)))
