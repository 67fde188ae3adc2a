"""Words drawn by their distances from a word, exactly: the law of the exponential mechanism.

With d the distance, V the number of words and h = epsilon / 2, word x has the weight exp(-h t),
where t is d, or min(d, gamma) where the law is truncated. It is drawn as a mixture. For a radius r,
at most gamma, every word of the vocabulary has the mass b = exp(-h r), and each of the words within
the radius the rest of its own, exp(-h d) - b. A word that is drawn for its b is uniform among all
V, and is kept with the chance min(1, exp(-h (t - r))); else all is drawn anew. So a table holds the
words within the radius alone. The radius decides how much work is done, and changes no law.

No weight is rounded. A table holds thresholds, computed in float64; a bound on their error says
which draws 64 bits decide (`doubt_of`). The few others are decided by integer bounds on the weights
themselves, with as many bits as it takes. So the word that is drawn is a function of the bits, and
of the vectors as rational numbers: it is the same on every machine, in every batch, and whichever
words a table was made for before.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Protocol

import numpy as np
import numpy.typing as npt

from quietcorpus.compiled import compiled

from .distance_tables import LAST, UNDECIDED, Floats, Ids, Table, doubt_of
from .exact import Bounds, Law, exp_bounds
from .exponential import settled
from .keystream import Addresses, Keystream
from .uniform import uniform

_DRAW_LANE, _ANY_LANE, _CHANCE_LANE = 0, 1, 2
_ATTEMPT = 20  # an attempt's blocks have numbers of so many bits
_GUARD_BITS = 64
_TOGETHER, _TOGETHER_ENTRIES = 64, 1 << 23
"""Words whose rows are made at once, and entries that these may have at most."""
MOST_ENTRIES = 1 << 25
"""Of a table, of 14 bytes each, beyond which it begins anew."""
_SELDOM = 64
_DIGITS = 6


Near = tuple[npt.NDArray[np.int64], Ids, Floats]
"""The words within a radius of each of n words, ascending in each row.

They are where each word's own begin, int64 (n + 1,), their numbers, and their squared distances,
each with a relative error of (D + 4) 2^-53 at most.
"""


class Distances(Protocol):
    """The Euclidean distances of a vocabulary's vectors, which are public."""

    @property
    def size(self) -> int:
        """Return the number of words V."""

    @property
    def dimensions(self) -> int:
        """Return the dimensions D of their vectors."""

    def within(self, words: Ids, radius: float) -> Near:
        """Find all words that are no farther than `radius`, which must be float64, and no others.

        Of those whose distance is the radius but for rounding, the same ones are found everywhere.
        """

    def between(self, words: Ids, others: Ids) -> Floats:
        """Return the squared distance of each pair, float64 (n,), with the error of `Near`."""

    def exactly(self, word: int, others: Ids) -> list[Fraction]:
        """Return the squared distance of a word from each of others, exactly."""


@dataclass(frozen=True)
class Decline:
    """The law by which weights decline with distance.

    Attributes:
        epsilon: per unit of distance.
        truncation: the distance beyond which they decline no further, gamma; None for no such.
    """

    epsilon: Fraction
    truncation: Fraction | None = None

    @property
    def rate(self) -> Fraction:
        """Return epsilon / 2, the amount by which a unit of distance lowers a log-weight."""
        return self.epsilon / 2

    def radius(self, words: int) -> Fraction:
        """Return the radius of tables, for so many words.

        About one draw in `_SELDOM` at most is for a word's b, and may be in vain: a word's own
        weight is 1, and the V masses b add up to 1 / `_SELDOM`.
        """
        radius = log_above(Fraction(_SELDOM * words)) / self.rate
        return radius if self.truncation is None else min(radius, self.truncation)


class DistanceDraws:
    """A drawer of words, with a table of the words that it met; for one thread at a time.

    The table depends on public data and on which words were asked for, and no draw depends on it:
    it saves work. So the time that a draw takes tells whether its word was met before.
    """

    def __init__(
        self, distances: Distances, decline: Decline, most_entries: int = MOST_ENTRIES
    ) -> None:
        self._distances, self._decline = distances, decline
        self._radius = decline.radius(distances.size)
        self._most = most_entries
        self._doubt = doubt_of(decline.rate * self._radius, distances.dimensions)
        self._table = Table(distances.size, self._doubt)

    @property
    def entries(self) -> int:
        """Return how many entries the table has."""
        return self._table.entries

    def draw(self, words: Ids, stream: Keystream, addresses: Addresses) -> Ids:
        """Draw a word for each of `words`, int32 (n,).

        Args:
            words: int32 (n,), 0 .. V - 1.
            stream: the stage's keystream.
            addresses: one stream address a word, shape (n, 2).
        """
        if self._table.has(words).all():
            return self._drawn(words, stream, addresses)
        drawn = np.empty(len(words), dtype=np.int32)
        distinct = np.unique(words)
        together = max(1, min(_TOGETHER, _TOGETHER_ENTRIES // self._distances.size))
        for start in range(0, len(distinct), together):
            some = distinct[start : start + together]
            self.add(some)
            own = np.isin(words, some)
            drawn[own] = self._drawn(words[own], stream, addresses[own])
        return drawn

    def add(self, words: Ids) -> None:
        """Make the rows of distinct words, unless the table has them."""
        missing = words[~self._table.has(words)]
        (offsets, ids, _), rests, bases = self.weights(missing)
        if self.entries and self.entries + len(ids) > self._most:
            self._table = Table(self._distances.size, self._doubt)
            if len(missing) < len(words):
                self.add(words)
                return
        self._table.add(missing, offsets, ids, rests, bases * self._distances.size)

    def weights(self, words: Ids) -> tuple[Near, Floats, Floats]:
        """Return the words within the radius, the rest of each one's mass, and the masses b.

        The masses are float64 (n,), of each of all V words, by the word that they are drawn for.
        """
        near = self._distances.within(words, float(self._radius))
        base = math.exp(-float(self._decline.rate) * float(self._radius))
        rests = _rests(near[2], float(self._decline.rate), base)
        return near, rests, np.full(len(words), base)

    def log_chances(self, squares: Floats) -> Floats:
        """Return the logarithms of the chances that words are kept that are drawn for their b."""
        counted = np.sqrt(squares)
        if self._decline.truncation is not None:
            counted = np.minimum(counted, float(self._decline.truncation))
        over: Floats = np.maximum(counted - float(self._radius), 0)
        return -float(self._decline.rate) * over

    def _drawn(self, words: Ids, stream: Keystream, addresses: Addresses, attempt: int = 0) -> Ids:
        """Draw for words that the table has."""
        counters = np.full(len(words), attempt << _ATTEMPT, dtype=np.uint64)
        bits = stream.gather(addresses, counters, lane=_DRAW_LANE).view("<u8")
        found = self._table.find(words, bits[:, 0])
        for row in np.flatnonzero(found == UNDECIDED):
            found[row] = self._decide(int(words[row]), stream, addresses[row], attempt)
        anyone = np.flatnonzero(found == LAST)
        if len(anyone):
            some = words[anyone], stream, addresses[anyone], attempt
            found[anyone] = self._drawn_of_all(*some)
        return found

    def _drawn_of_all(
        self, words: Ids, stream: Keystream, addresses: Addresses, attempt: int
    ) -> Ids:
        """Draw a word of all, for each word, and keep it or draw anew."""
        found = uniform(
            self._distances.size, stream, addresses, lane=_ANY_LANE, start=attempt << _ATTEMPT
        ).astype(np.int32)
        again = ~self._kept(words, found, stream, addresses, attempt)
        if again.any():
            found[again] = self._drawn(words[again], stream, addresses[again], attempt + 1)
        return found

    def _kept(
        self, words: Ids, others: Ids, stream: Keystream, addresses: Addresses, attempt: int
    ) -> npt.NDArray[np.bool_]:
        """Decide whether words that were drawn for their b are kept."""
        if self._decline.truncation == self._radius:
            return np.ones(len(words), dtype=bool)
        squares = self._distances.between(words, others)
        counters = np.full(len(words), attempt << _ATTEMPT, dtype=np.uint64)
        bits = stream.gather(addresses, counters, lane=_CHANCE_LANE).view("<u8")[:, 0]
        uniforms = bits.astype(np.float64) * 2.0**-64
        chances = np.exp(self.log_chances(squares))
        lost = float(self._decline.rate) * np.sqrt(squares)
        # Distances, their product with the rate, and exponentials, as in `doubt_of`; and a uniform.
        doubt = chances * (self._distances.dimensions + 16) * (lost + 1) * 2.0**-52 + 2.0**-52
        kept: npt.NDArray[np.bool_] = uniforms < chances
        for row in np.flatnonzero(np.abs(uniforms - chances) <= doubt):
            (square,) = self._distances.exactly(int(words[row]), others[row : row + 1])
            kept[row] = self._keeps(square, stream, addresses[row], attempt)
        return kept

    def _keeps(
        self, square: Fraction, stream: Keystream, address: npt.NDArray[np.uint64], attempt: int
    ) -> bool:
        """Decide whether a word is kept, with as many bits as it takes; the first are `_kept`'s."""
        rate, radius, gamma = self._decline.rate, self._radius, self._decline.truncation
        if square <= radius**2:
            return True
        for value, bits in _revealed(stream, address, _CHANCE_LANE, attempt):
            precision = bits + _GUARD_BITS
            near, far = (
                max(Fraction(0), (root if gamma is None else min(root, gamma)) - radius)
                for root in root_bounds(square, precision)
            )
            low, high = _exp(rate * far, precision)[0], _exp(rate * near, precision)[1]
            if (value + 1) << _GUARD_BITS <= low:
                return True
            if value << _GUARD_BITS >= high:
                return False
        raise AssertionError("bits never end")

    def _decide(
        self, word: int, stream: Keystream, address: npt.NDArray[np.uint64], attempt: int
    ) -> int:
        """Draw once in big integers, with as many bits as it takes; the first are `_drawn`'s."""
        ids = self._table.outcomes(word)
        squares = self._distances.exactly(word, ids)
        law = Masses(self._decline.rate, self._radius, squares, self._distances.size)
        for value, bits in _revealed(stream, address, _DRAW_LANE, attempt):
            found = settled(range(len(ids) + 1), law, value, bits)
            if found is not None:
                return LAST if found == len(ids) else int(ids[found])
        raise AssertionError("bits never end")


class Masses(Law):
    """The masses of a row: of the words within the radius, and last of all V words, V b.

    They are no survival function: `settled` adds them up.
    """

    def __init__(
        self, rate: Fraction, radius: Fraction, squares: list[Fraction], size: int
    ) -> None:
        self._rate, self._squares, self._size = rate, squares, size
        self._largest = rate * radius

    def survival(self, index: int, bits: int) -> Bounds:
        """Return bounds on a mass, times 2^bits."""
        base_low, base_high = _exp(self._largest, bits)
        if index == len(self._squares):
            return self._size * base_low, self._size * base_high
        near, far = root_bounds(self._squares[index], bits + _GUARD_BITS)
        low, high = _exp(self._rate * far, bits)[0], _exp(self._rate * near, bits)[1]
        return max(0, low - base_high), max(0, high - base_low)


def log_above(value: Fraction) -> Fraction:
    """Return the natural logarithm of a number above 1, rounded up to 6 digits.

    `Decimal` rounds it correctly, so that it is the same on every machine.
    """
    up = Context(prec=4 * _DIGITS, rounding=ROUND_CEILING)
    quotient = up.divide(Decimal(value.numerator), Decimal(value.denominator))
    exact = quotient.ln(up).next_plus(up)
    return Fraction(Context(prec=_DIGITS, rounding=ROUND_CEILING).plus(exact))


def root_bounds(square: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    """Return bounds on a root that are 2^-bits apart, or the root itself twice."""
    scaled = (square.numerator << 2 * bits) // square.denominator
    root = math.isqrt(scaled)
    low = Fraction(root, 1 << bits)
    return low, low if low**2 == square else Fraction(root + 1, 1 << bits)


def _exp(exponent: Fraction, bits: int) -> Bounds:
    """Return bounds on exp(-exponent) * 2^bits."""
    if not exponent:
        return 1 << bits, 1 << bits
    if exponent > bits:  # exp(-bits) < 2^-bits, for which nobody needs an exponential
        return 0, 1
    return exp_bounds(exponent, bits)


def _revealed(
    stream: Keystream, address: npt.NDArray[np.uint64], lane: int, attempt: int
) -> Iterator[tuple[int, int]]:
    """Yield more and more bits of an attempt's draw, as a number and how many they are."""
    value, bits, block = 0, 0, attempt << _ATTEMPT
    while True:
        counter = np.array([block], dtype=np.uint64)
        for word in stream.gather(address[None, :], counter, lane=lane).view("<u8")[0]:
            value, bits = value << 64 | int(word), bits + 64
        yield value, bits
        block += 1


@compiled
def _rests(squares, rate, base):  # type: ignore[no-untyped-def]
    """Return exp(-rate d) - base for squared distances, and 0 where that is less."""
    rests = np.empty(len(squares))
    for i in range(len(squares)):
        rests[i] = max(0.0, np.exp(-rate * np.sqrt(squares[i])) - base)
    return rests
