"""Exact noise on vectors of whole numbers, of probability proportional to exp(-rate ||z||_2).

It is the K-norm mechanism (Hardt and Talwar 2010, section 4) for the Euclidean norm, on the lattice
of whole numbers: Madlib's law (Feyisetan et al. 2020) without the gaps of floating-point noise.

A draw is by rejection. Candidates have independent two-sided geometric coordinates of a rate a with
a^2 d <= rate^2, so that a ||z||_1 <= rate ||z||_2; z is accepted with probability
exp(a ||z||_1 - rate ||z||_2), which leaves a mass proportional to exp(-rate ||z||_2).
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from quietcorpus.compiled import compiled

from ..keystream import Addresses, Keystream
from .exact import ExactSampler, Law, exp_bounds
from .geometric import TwoSidedGeometric

LARGEST_DIMENSIONS = 24
"""At it, one candidate in 500 is accepted; at 32, it would be one in 4,600."""

_VALUE_LANE, _ACCEPTANCE_LANE, _MORE_LANE = 0, 2, 3
_RATE_BITS = 64
_MULTIPLE = 8  # of what an exact sampler starts at
_MOST_AT_ONCE = 512  # candidates of a draw
_GUARD_BITS = 64


class EuclideanNoise:
    """Noise of probability proportional to exp(-rate ||z||_2) on the vectors of d whole numbers.

    Guarantee:
        For whole-number vectors s and s', and every set S of outputs,
        Pr[s + Z in S] <= exp(rate * ||s - s'||_2) Pr[s' + Z in S]: the law's constant is the same
        for both, since shifting the lattice by whole numbers leaves it as it is, and
        | ||y - s|| - ||y - s'|| | <= ||s - s'||.
        It is exact for ideal random bits: candidates are drawn exactly, and every acceptance is
        decided by bounds on its probability. How many candidates a draw takes is independent of the
        one that is accepted.
    """

    def __init__(self, rate: Fraction, dimensions: int) -> None:
        """Tabulate the candidates' law.

        Raises ValueError for more dimensions than `LARGEST_DIMENSIONS`, and for a rate so small
        that its candidates cannot be drawn.
        """
        check_dimensions(dimensions)
        self.rate, self.dimensions = rate, dimensions
        self.coordinate_rate = coordinate_rate(rate, dimensions)
        self._sampler = ExactSampler(TwoSidedGeometric(self.coordinate_rate))
        wanted = math.ceil(1 / acceptance(dimensions) / _MULTIPLE) * _MULTIPLE
        self._at_once = min(wanted, _MOST_AT_ONCE)

    @property
    def law(self) -> Law:
        """Return the law of a candidate's coordinates."""
        return self._sampler.law

    def sample(self, stream: Keystream, addresses: Addresses) -> npt.NDArray[np.int64]:
        """Draw a vector of noise at every address, int64 (n, d)."""
        drawn = np.empty((len(addresses), self.dimensions), dtype=np.int64)
        active = np.arange(len(addresses))
        start = 0
        while len(active):
            found, values = self._accepted(stream, addresses[active], start)
            drawn[active[found]] = values[found]
            active = active[~found]
            start += self._at_once
        return drawn

    def _accepted(
        self, stream: Keystream, addresses: Addresses, start: int
    ) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
        """Return whether one of the candidates from `start` on is accepted, and the first of them.

        The shapes are (n,) and (n, d).
        """
        count, d = self._at_once, self.dimensions
        candidates = self._sampler.sample(
            stream, addresses, count * d, lane=_VALUE_LANE, start=start * d
        ).reshape(-1, count, d)
        uniforms = stream.blocks(
            addresses, count // 2, lane=_ACCEPTANCE_LANE, start=start // 2
        ).view("<u8")
        rates = float(self.rate), float(self.coordinate_rate)
        first = np.zeros(len(addresses), dtype=np.int64)
        found = np.zeros(len(addresses), dtype=bool)
        open_ = np.arange(len(addresses))
        while len(open_):
            where, decided = _first(candidates, uniforms, *rates, open_, first[open_])
            first[open_] = where
            found[open_] = decided & (where < count)
            doubtful = open_[~decided]
            for row in doubtful:
                column = int(first[row])
                found[row] = self._decide(
                    stream,
                    addresses[row],
                    start + column,
                    candidates[row, column],
                    int(uniforms[row, column]),
                )
                first[row] += not found[row]
            open_ = doubtful[~found[doubtful]]
        rows = np.arange(len(addresses))
        return found, candidates[rows, np.minimum(first, count - 1)].astype(np.int64)

    def _decide(
        self,
        stream: Keystream,
        address: npt.NDArray[np.uint64],
        number: int,
        candidate: npt.NDArray[np.signedinteger],
        uniform: int,
    ) -> bool:
        """Decide whether a candidate is accepted; reveal 64 bits at a time until they settle."""
        squares = sum(int(value) ** 2 for value in candidate)
        total = sum(abs(int(value)) for value in candidate)
        bits, extension = 64, 0
        while (verdict := self.accepts(squares, total, uniform, bits)) is None:
            # Candidates' numbers stay below 2^40, and the lane begins at bit 56.
            counter = np.array([number + (extension << 40)], dtype=np.uint64)
            block = stream.gather(address[None, :], counter, lane=_MORE_LANE)
            uniform = uniform << 64 | int(block.view("<u8")[0, 0])
            bits, extension = bits + 64, extension + 1
        return verdict

    def accepts(self, squares: int, total: int, uniform: int, bits: int) -> bool | None:
        """Return whether V in [uniform, uniform + 1) / 2^bits is below a candidate's chance.

        `squares` is ||z||_2^2 and `total` ||z||_1. Returns None where the bits do not decide.
        """
        if not total:  # its chance is 1, which no bounds reach
            return True
        precision = bits + _GUARD_BITS
        least, most = self.loss(squares, total, precision)
        if (uniform + 1) << _GUARD_BITS <= exp_bounds(most, precision)[0]:
            return True
        return False if uniform << _GUARD_BITS >= exp_bounds(least, precision)[1] else None

    def loss(self, squares: int, total: int, bits: int) -> tuple[Fraction, Fraction]:
        """Return bounds on rate ||z||_2 - a ||z||_1, the negative logarithm of a chance.

        `squares` is ||z||_2^2 and `total` ||z||_1; the bounds are rate * 2^-bits apart, at most.
        """
        root = math.isqrt(squares << 2 * bits)
        least, most = (
            self.rate * Fraction(end, 1 << bits) - self.coordinate_rate * total
            for end in (root, root + 1)
        )
        return max(Fraction(0), least), most


def check_dimensions(dimensions: int) -> None:
    """Raise ValueError unless noise can be drawn in this number of dimensions."""
    if not 1 <= dimensions <= LARGEST_DIMENSIONS:
        raise ValueError(f"dimensions must be 1 to {LARGEST_DIMENSIONS}, not {dimensions}")


def coordinate_rate(rate: Fraction, dimensions: int) -> Fraction:
    """Return rate / sqrt(dimensions), rounded down."""
    square = rate**2 / dimensions
    return Fraction(
        math.isqrt((square.numerator << 2 * _RATE_BITS) // square.denominator), 1 << _RATE_BITS
    )


def acceptance(dimensions: int) -> float:
    """Return the share of candidates that is accepted, on a fine lattice: d! V_d / (2 sqrt(d))^d.

    V_d is the volume of the unit ball.
    """
    d = dimensions
    volume = d / 2 * math.log(math.pi) - math.lgamma(d / 2 + 1)
    return math.exp(math.lgamma(d + 1) + volume - d * math.log(2 * math.sqrt(d)))


@compiled
def _first(candidates, uniforms, rate, coordinate_rate, rows, starts):  # type: ignore[no-untyped-def]
    """Find the first candidate of each row, from its start on, that floats accept or leave open.

    Returns its number (their count, if there is none) and whether floats decide.
    """
    found = np.empty(len(rows), dtype=np.int64)
    decided = np.ones(len(rows), dtype=np.bool_)
    count = candidates.shape[1]
    for position in range(len(rows)):
        row = rows[position]
        where = starts[position]
        while where < count:
            total = np.int64(0)
            squares = np.int64(0)
            for value in candidates[row, where]:
                whole = np.int64(value)
                total += abs(whole)
                squares += whole * whole
            loss = rate * np.sqrt(np.float64(squares))
            chance = np.exp(coordinate_rate * np.float64(total) - loss)
            # Two rates and a root, each within 2^-52 of itself, and products as large as the loss.
            doubt = chance * (loss + 1.0) * 2.0**-49 + 2.0**-60
            uniform = np.float64(uniforms[row, where]) * 2.0**-64
            if uniform < chance - doubt:
                break
            if uniform < chance + doubt:
                decided[position] = False
                break
            where += 1
        found[position] = where
    return found, decided
