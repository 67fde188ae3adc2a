"""Audits of the noise on words: Madlib's on vectors, and BRR's on bits."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

import numpy as np
import numpy.typing as npt

from quietcorpus.evaluation.audits.exact import affordable
from quietcorpus.evaluation.audits.findings import Exact, Sampled
from quietcorpus.evaluation.audits.lower_bound import (
    LowerBound,
    check,
    epsilon_at_least,
    rate_at_least,
)
from quietcorpus.mechanisms import madlib
from quietcorpus.mechanisms.brr import flip_bounds
from quietcorpus.mechanisms.guarantees import round_up
from quietcorpus.pipelines.audit.inputs import LOSS, fresh_stream

_NUMBERS = 1 << 24  # about as many are drawn for one audit of noise
_LEAST = 1000  # draws at least, whatever they cost
_BITS = 128
_CLOSE = 40  # significant bits of a chance


def of_noise(epsilon: Fraction, dimensions: int) -> list[Exact | Sampled]:
    """Return audits of Madlib's noise: in one dimension, where events tell most, and its length."""
    apart = np.float32(LOSS / float(epsilon))
    return [
        Sampled(
            "noise in one dimension",
            round_up(epsilon * Fraction(float(apart))),
            f"Noise was added to two points {apart:g} apart.",
            partial(epsilon_at_least, partial(points_noised, epsilon), 0.0, float(apart)),
        ),
        Sampled(
            "noise's length, a unit of distance",
            round_up(epsilon),
            f"If noise in {dimensions} dimensions has Madlib's form, its epsilon is at least that "
            "much.",
            partial(_lengths, epsilon, dimensions),
            most=max(_LEAST, _NUMBERS // dimensions),
        ),
    ]


def of_flips(epsilon: Fraction) -> Exact:
    """Return the audit of BRR's bit flips."""
    return Exact(
        "flips of a bit, a unit of distance",
        round_up(epsilon),
        "The chances that a bit flips, and that it does not, were compared, by the binary digits "
        "that uniforms are compared with.",
        partial(flip_loss, epsilon),
    )


def flip_loss(epsilon: Fraction) -> float:
    """Bound from above the log-ratio of the chances that a bit flips and that it does not."""
    # A chance may be tiny: take as many bits as give it `_CLOSE` significant ones.
    bits = _BITS
    while not (low := flip_bounds(epsilon, affordable(bits))[0]) >> _CLOSE:
        bits *= 2
    high, one = flip_bounds(epsilon, bits)[1], 1 << bits
    return max(math.log(one - low) - math.log(low), math.log(high) - math.log(one - high))


def points_noised(epsilon: Fraction, place: float, count: int) -> npt.NDArray[np.float32]:
    """Add Madlib's noise to a point of a line: float32 (count, 1)."""
    return _noisy(epsilon, np.full((count, 1), place, dtype=np.float32))


def _lengths(epsilon: Fraction, dimensions: int, draws: int, level: float) -> LowerBound:
    check(draws, level)
    noise = _noisy(epsilon, np.zeros((draws, dimensions), dtype=np.float32))
    lengths = np.linalg.norm(noise.astype(np.float64), axis=1)
    bound = rate_at_least(lengths, dimensions, level)
    return LowerBound(bound, math.inf, draws, "the sum of the noise's lengths")


def _noisy(epsilon: Fraction, vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    count = len(vectors)
    stream, addresses = fresh_stream([b""] * count)
    return madlib.perturb(vectors, [epsilon], np.zeros(count, np.int64), stream, addresses)
