"""The exponential mechanism on integer utilities, sampled exactly.

McSherry and Talwar: Mechanism design via differential privacy (FOCS 2007).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from quietcorpus.compiled import compiled, inlined

from ..keystream import Addresses, Keystream
from .exact import Bounds, Law, exp_bounds, floor_of

LARGEST_SET = 1 << 15
"""The largest number of candidates that a draw chooses from."""
_DRAW_LANE = 0
_WEIGHT_BITS = 46  # a sum of LARGEST_SET weights has room in 63 bits, with their errors
_UNDECIDED = -1


def check_set(size: int) -> None:
    """Raise ValueError for no candidates, or too many."""
    if not 1 <= size <= LARGEST_SET:
        raise ValueError(f"one of 1 to {LARGEST_SET} candidates is drawn")


@dataclass(frozen=True)
class ExponentialMechanism:
    """A draw of candidate f with weight exp(epsilon * u(x, f) / (2 * sensitivity)).

    Guarantee:
        If for every two neighbouring inputs x, x' and every candidate f the utilities u(x, f) and
        u(x', f) differ by at most `sensitivity`, then for every set S of candidates,
        Pr[M(x) in S] <= exp(epsilon) Pr[M(x') in S].
        The draw has exactly this law for ideal random bits: no weight and no sum is rounded. The
        bound is computational for the keyed stream.
    """

    epsilon: Fraction
    sensitivity: int

    @property
    def rate(self) -> Fraction:
        """Return the amount that a unit of utility adds to the logarithm of a weight."""
        return self.epsilon / (2 * self.sensitivity)

    @property
    def law(self) -> Decay:
        """Return the weights of candidates, by how far their utility lies below the best."""
        return Decay(self.rate)

    def draw(
        self, utilities: npt.NDArray[np.int32], stream: Keystream, addresses: Addresses
    ) -> npt.NDArray[np.int64]:
        """Draw a candidate for each row of utilities, int64 (n,).

        Args:
            utilities: int32 (n, m), 1 <= m <= LARGEST_SET.
            stream: the stage's keystream.
            addresses: one stream address a row, shape (n, 2).

        Raises:
            ValueError: there are no candidates, or too many.
        """
        check_set(utilities.shape[1])
        if not len(utilities):
            return np.empty(0, dtype=np.int64)
        words = stream.gather(addresses, np.zeros(len(addresses), np.uint64), lane=_DRAW_LANE)
        largest = int((utilities.max(axis=1) - utilities.min(axis=1)).max())
        law = self.law
        weights = _weights(law, min(largest, _support(law.rate)))
        drawn: npt.NDArray[np.int64]
        drawn = _draw(utilities, weights, words.view("<u8")[:, 0].copy())
        for row in np.nonzero(drawn == _UNDECIDED)[0]:
            drawn[row] = self._decide(utilities[row], stream, addresses[row])
        return drawn

    def _decide(
        self, utilities: npt.NDArray[np.int32], stream: Keystream, address: npt.NDArray[np.uint64]
    ) -> int:
        """Draw once in big integers, with as many bits as it takes; the first 64 are `draw`'s."""
        gaps = (utilities.max() - utilities).tolist()
        law, value, bits, block = self.law, 0, 0, 0
        while True:
            counter = np.array([block], dtype=np.uint64)
            for word in stream.gather(address[None, :], counter, lane=_DRAW_LANE).view("<u8")[0]:
                value, bits = value << 64 | int(word), bits + 64
            block += 1
            found = settled(gaps, law, value, bits)
            if found is not None:
                return found


@dataclass(frozen=True)
class Decay(Law):
    """The weight of a candidate whose utility is `gap` below the best: exp(-rate * gap)."""

    rate: Fraction

    def survival(self, index: int, bits: int) -> Bounds:
        """See `Law`."""
        exponent = self.rate * index
        if not exponent:
            return 1 << bits, 1 << bits
        if exponent > bits:  # exp(-bits) < 2^-bits, so no exponential is needed
            return 0, 1
        return exp_bounds(exponent, bits)


def settled(gaps: Sequence[int], law: Law, value: int, bits: int) -> int | None:
    """Return the candidate that V in [value, value + 1) / 2^bits settles, or None if undecided.

    Candidate c has the weight law.survival(gaps[c]).
    """
    bounds = {gap: law.survival(gap, bits) for gap in set(gaps)}
    total_low, total_high = (sum(bounds[gap][side] for gap in gaps) for side in (0, 1))
    # V * total, times 2^(2 bits)
    low, high = value * total_low, (value + 1) * total_high
    sum_low = sum_high = 0
    for candidate, gap in enumerate(gaps):
        before_high = sum_high
        sum_low, sum_high = sum_low + bounds[gap][0], sum_high + bounds[gap][1]
        if before_high << bits <= low and high <= sum_low << bits:
            return candidate
    return None


def _support(rate: Fraction) -> int:
    """Return the largest gap whose weight may have a bit above 2^-_WEIGHT_BITS."""
    return int(_WEIGHT_BITS / rate) + 1


@functools.lru_cache(16)
def _weights(law: Decay, largest: int) -> npt.NDArray[np.uint64]:
    """Compute floor(exp(-rate * gap) * 2^_WEIGHT_BITS) for gaps 0 .. largest, exactly."""
    floors = (floor_of(law, gap, _WEIGHT_BITS) for gap in range(largest + 1))
    return np.fromiter(floors, np.uint64, largest + 1)


@inlined
def _high(a, b):  # type: ignore[no-untyped-def]
    """Return the upper 64 bits of the product of two uint64."""
    half = np.uint64(32)
    mask = np.uint64(0xFFFFFFFF)
    low = (a & mask) * (b & mask)
    left = (a >> half) * (b & mask)
    right = (a & mask) * (b >> half)
    middle = (low >> half) + (left & mask) + (right & mask)
    return (a >> half) * (b >> half) + (left >> half) + (right >> half) + (middle >> half)


@compiled
def _draw(utilities, weights, words):  # type: ignore[no-untyped-def]
    """Draw by inversion of V in [word, word + 1) / 2^64; -1 where floors of weights do not decide.

    A weight lies in [floor, floor + 1], so a sum of i weights lies in [sum, sum + i].
    """
    drawn = np.empty(len(utilities), dtype=np.int64)
    count = utilities.shape[1]
    for row in range(len(utilities)):
        best = utilities[row].max()
        total = np.uint64(0)
        for candidate in range(count):
            gap = best - utilities[row, candidate]
            if gap < len(weights):
                total += weights[gap]
        low = _high(words[row], total)
        # (word + 1) / 2^64 adds less than one, and the rounding of the product another.
        high = _high(words[row], total + np.uint64(count)) + np.uint64(2)
        after = np.uint64(0)
        drawn[row] = -1
        for candidate in range(count):
            before = after
            gap = best - utilities[row, candidate]
            if gap < len(weights):
                after += weights[gap]
            if after > low:
                if before + np.uint64(candidate) <= low and high <= after:
                    drawn[row] = candidate
                break
    return drawn
