"""BRR: binary randomised response on a word's code, for metric differential privacy.

Carvalho, Vasiloudis and Feyisetan: BRR, preserving privacy of text data efficiently on device
(ICML 2021 workshop), section 4, algorithm 3.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from quietcorpus.compiled import compiled

from ..keystream import BLOCK_BYTES, Addresses, Keystream
from ..noise.exact import Bounds, Law, exp_bounds, floor_of
from .document_loss import Flips
from .mechanism import HAMMING, NoisyWord, Points, Randomness

_FLIP_LANE = 0
_DIGITS = 16  # of the flip probability, and so random bits for every bit, in a round


@dataclass(frozen=True)
class BinaryRandomizedResponse(NoisyWord):
    """Randomised response on a word's code: every bit flips with chance 1 / (1 + exp(epsilon)).

    Guarantee:
        For every two words w, w' and every set S of codes,
        Pr[M(w) in S] <= exp(epsilon * d(w, w')) Pr[M(w') in S], with d the Hamming distance of
        their codes, and with equality for some S.
        The flips have exactly this probability for ideal random bits; the bound is computational
        for the keyed stream. The nearest code of the whole vocabulary is post-processing.
    """

    name = "brr"
    title = "BRR"
    does = "flips bits of a word's code"
    metric = HAMMING
    part = "codes"
    proofs = ("words/brr",)

    def perturb(self, points: Points, noise: Randomness) -> Points:
        """See `NoisyWord`."""
        return flip(points, *noise)

    @classmethod
    def loss_law(cls, dimensions: int, reach: Fraction) -> Flips:
        """See `WordMechanism`."""
        return Flips()


@dataclass(frozen=True)
class Flip(Law):
    """The law of one flip: 1 with probability 1 / (1 + exp(epsilon)), else 0."""

    epsilon: Fraction

    def survival(self, index: int, bits: int) -> Bounds:
        """See `Law`."""
        if index > 0:
            return 0, 0
        if self.epsilon > bits:  # p < exp(-bits), so no exponential is needed
            return 0, 1
        low, high = exp_bounds(self.epsilon, bits)
        one = 1 << bits
        # p = x / (1 + x), which increases with x = exp(-epsilon)
        return (low << bits) // (one + low), -((-high << bits) // (one + high))


def flip(
    codes: npt.NDArray[np.uint64],
    epsilons: Sequence[Fraction],
    which: npt.NDArray[np.int64],
    stream: Keystream,
    addresses: Addresses,
) -> npt.NDArray[np.uint64]:
    """Flip the codes' bits at random; return the noisy codes, uint64 (n, words).

    Args:
        codes: uint64 (n, words), of 64 * words bits each.
        epsilons: those in use, per bit.
        which: int64 (n,), the position in `epsilons` of each code's epsilon.
        stream: the stage's keystream.
        addresses: one stream address a code, shape (n, 2).
    """
    noisy = codes.copy()
    undecided = np.full_like(codes, ~np.uint64(0))
    rows = np.arange(len(codes))
    blocks = _DIGITS * codes.shape[1] * 8 // BLOCK_BYTES
    round_ = 0
    while len(rows):
        digits = np.array([_digits(epsilon, round_) for epsilon in epsilons], dtype=np.uint16)
        raw = stream.blocks(addresses[rows], blocks, lane=_FLIP_LANE, start=round_ * blocks)
        planes = raw.view("<u8").reshape(len(rows), codes.shape[1], _DIGITS)
        _compare(noisy, undecided, rows, planes, digits[which])
        rows = rows[undecided[rows].any(axis=1)]
        round_ += 1
    return noisy


def flip_bounds(epsilon: Fraction, bits: int) -> Bounds:
    """Return bounds on the probability with which `flip` flips a bit, times 2^bits.

    They come from the same binary digits that `flip` compares uniforms with.
    """
    rounds = -(-bits // _DIGITS)
    low = 0
    for round_ in range(rounds):
        low = low << _DIGITS | _digits(epsilon, round_)
    low >>= _DIGITS * rounds - bits
    return low, low + 1


@functools.lru_cache(1 << 16)
def _digits(epsilon: Fraction, round_: int) -> int:
    """Return binary digits 16 * round_ .. 16 * (round_ + 1) of the flip probability, exactly."""
    return floor_of(Flip(epsilon), 0, _DIGITS * (round_ + 1)) & ((1 << _DIGITS) - 1)


@compiled
def _compare(noisy, undecided, rows, planes, digits):  # type: ignore[no-untyped-def]
    """Compare 64 uniforms at a time with p, digit by digit, and flip where they are less."""
    for i in range(len(rows)):
        row = rows[i]
        for word in range(planes.shape[1]):
            # Bit b of a plane is one digit of bit b's own uniform. The first digit that differs
            # from p's decides: the uniform is less where p's digit is 1. `still` marks the bits
            # whose digits have all been equal.
            still = undecided[row, word]
            for digit in range(planes.shape[2]):
                drawn = planes[i, word, digit]
                if (digits[row] >> (planes.shape[2] - 1 - digit)) & 1:
                    noisy[row, word] ^= still & ~drawn
                    still &= drawn
                else:
                    still &= ~drawn
            undecided[row, word] = still
