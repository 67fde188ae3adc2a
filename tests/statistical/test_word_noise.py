"""The laws of the words' noise, and that no two words, bits or coordinates share any of it.

Madlib: a vector of density exp(-||z||) has a radius of law Gamma(d, 1) and, independently, a
direction that is uniform on the sphere. Draws are of documents of 64 equal words; all of the
documents are equal, at places of their own.

Power. The chi-square test of a radius has 40 cells and rejects above 103. A scale that is wrong
by the factor 1 + t adds n t^2 d to its mean: 420 at d = 1, 840 at 2, 1,310 at 50 and 7,900 at 300
for t = 2 %. A radius of Gamma(d - 1) or Gamma(d + 1) is off by one in a deviation of sqrt(d),
which adds n / d: 218 at d = 300, more elsewhere. Of a tail cut at the upper 5e-4, 33 draws are
missed. A coordinate that is 5 % longer than the others adds n / 200 to the statistic of the squares
(330 at d = 300, where it has 299 degrees and rejects above 427); a sign that is right in 55 % of
the vectors adds n / 160 to that of the means. What is copied from one word to another with
probability r adds n r^2 (k - 1) / 2 to a k x k table: 246 at r = 5 % and k = 4.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import stats

from quietcorpus.mechanisms.brr import flip
from quietcorpus.mechanisms.madlib import unit_noise

SIZES = {1: 1 << 20, 2: 1 << 20, 50: 1 << 16, 300: 1 << 16}
LENGTH = 64  # words of a document
CHUNK = 1 << 13
TAIL = 5e-4


class Sample:
    """The statistics of n noise vectors for the tests, a chunk of whole documents at a time."""

    def __init__(self, chunks: Iterator[np.ndarray]) -> None:
        radii, ends, words, documents = [], [], [], []
        self.octants = np.zeros((2, 8), np.int64)
        self.first = self.second = np.zeros(1)
        for noise in chunks:
            radius = np.linalg.norm(noise, axis=1)
            unit = noise / radius[:, None]
            self.dimensions = noise.shape[1]
            self.first = self.first + unit.sum(axis=0)
            self.second = self.second + (unit * unit).sum(axis=0)
            radii.append(radius)
            ends.append(unit[:, sorted({0, self.dimensions // 2, self.dimensions - 1})])
            for shift in (0, 1):
                self.octants[shift] += _octants(noise[:, shift:])
            words.append((unit[::2] * unit[1::2]).sum(axis=1))
            by_document = unit.reshape(-1, LENGTH, self.dimensions)
            documents.append((by_document[::2] * by_document[1::2]).sum(axis=2).ravel())
        self.radius, self.ends = np.concatenate(radii), np.concatenate(ends)
        self.words, self.documents = np.concatenate(words), np.concatenate(documents)


def _octants(noise: np.ndarray) -> np.ndarray:
    """In which eighth of the circle columns 0 and 1, 2 and 3, ... lie: counts over all pairs."""
    pairs = noise.shape[1] // 2
    one, other = noise[:, 0 : 2 * pairs : 2], noise[:, 1 : 2 * pairs : 2]
    cell = 4 * (one < 0) + 2 * (other < 0) + (np.abs(one) < np.abs(other))
    return np.bincount(cell.ravel(), minlength=8)


class Law:
    """The checks; each rejects a sample of the law with probability `checks.alpha`."""

    def __init__(self, checks: Any) -> None:
        self._checks = checks

    def radius(self, sample: Sample | Radii) -> None:
        """Gamma(d): 40 cells, and what lies beyond the upper 1 / 2000."""
        law = stats.gamma(sample.dimensions)
        self._cells(sample.radius, law.ppf)
        far = int((sample.radius > law.isf(TAIL)).sum())
        self._checks.binomial(far, len(sample.radius), TAIL)

    def direction(self, sample: Sample) -> None:
        """Uniform: means, squares, three coordinates by themselves, and coordinates by pairs."""
        n, d = len(sample.radius), sample.dimensions
        # The covariances of u are I / d, those of its squares 2 / (d (d + 2)) (I - 1 / d).
        self._at_most(d / n * (sample.first**2).sum(), d)
        if d == 1:
            return
        squares = ((sample.second / n - 1 / d) ** 2).sum()
        self._at_most(n * d * (d + 2) / 2 * squares, d - 1)
        for coordinate in sample.ends.T:
            self._cosines(coordinate, d)
        for counts in sample.octants[: 1 if d == 2 else 2]:
            self._checks.chi_square(counts, np.full(8, 1 / 8))

    def radius_and_direction(self, sample: Sample) -> None:
        """Independent: quartiles of the radius beside those of two coordinates."""
        for coordinate in (sample.ends[:, 0], sample.ends[:, -1]):
            self._joint(self._quarters(sample), self._coordinate_cells(sample, coordinate))

    def words(self, sample: Sample) -> None:
        """The words of a document are independent."""
        quarters = self._quarters(sample)
        self._joint(quarters[::2], quarters[1::2])
        self._cosines(sample.words, sample.dimensions)

    def documents(self, sample: Sample) -> None:
        """So are the words at one place of two equal documents."""
        quarters = self._quarters(sample).reshape(-1, LENGTH)
        self._joint(quarters[::2], quarters[1::2])
        self._cosines(sample.documents, sample.dimensions)

    def _at_most(self, statistic: float, degrees: int) -> None:
        assert stats.chi2.sf(statistic, degrees) >= self._checks.alpha

    def _cells(self, values: np.ndarray, quantile: Callable[[np.ndarray], np.ndarray]) -> None:
        cells = np.searchsorted(quantile(np.arange(1, 40) / 40), values)
        self._checks.chi_square(np.bincount(cells, minlength=40), np.full(40, 1 / 40))

    def _cosines(self, cosines: np.ndarray, d: int) -> None:
        """Of a direction that is uniform, with any other: (1 + c) / 2 is a Beta."""
        if d == 1:
            self._checks.binomial(int((cosines > 0).sum()), len(cosines), 0.5)
        else:
            self._cells((1 + cosines) / 2, stats.beta((d - 1) / 2, (d - 1) / 2).ppf)

    @staticmethod
    def _quarters(sample: Sample) -> np.ndarray:
        quartiles = stats.gamma(sample.dimensions).ppf(np.arange(1, 4) / 4)
        return np.searchsorted(quartiles, sample.radius)

    @staticmethod
    def _coordinate_cells(sample: Sample, coordinate: np.ndarray) -> np.ndarray:
        if sample.dimensions == 1:  # halves, as quarters of which two are empty
            return 3 * (coordinate > 0)
        half = (sample.dimensions - 1) / 2
        return np.searchsorted(2 * stats.beta(half, half).ppf(np.arange(1, 4) / 4) - 1, coordinate)

    def _joint(self, one: np.ndarray, other: np.ndarray) -> None:
        counts = np.bincount(4 * one.ravel() + other.ravel(), minlength=16).reshape(4, 4)
        kept = counts[:, counts.sum(axis=0) > 0]
        self._checks.chi_square(kept, np.full(kept.shape, 1 / kept.size))


CHECKS = ["radius", "direction", "radius_and_direction", "words", "documents"]


@pytest.fixture(scope="module")
def law(checks: Any) -> Law:
    return Law(checks)


@pytest.fixture(scope="module", params=SIZES)
def sample(request: pytest.FixtureRequest, checks: Any) -> Sample:
    dimensions = request.param
    documents = SIZES[dimensions] // LENGTH
    stream, addresses = checks.stream_and_addresses(documents)
    parts = stream.parts(addresses, np.arange(documents + 1, dtype=np.int64) * LENGTH)
    return Sample(
        unit_noise(dimensions, stream, parts[start : start + CHUNK])
        for start in range(0, len(parts), CHUNK)
    )


@pytest.mark.parametrize("check", CHECKS)
def test_madlibs_noise(sample: Sample, law: Law, check: str) -> None:
    # Kills: the Gamma of d - 1 or d + 1, half of it, an angle of half a turn, a sine for a cosine
    # twice, the scale drawn once a document, words or documents of one address.
    getattr(law, check)(sample)


# A control changes (directions, radii) of true draws.
Drawn = tuple[np.ndarray, np.ndarray]
Change = Callable[[np.random.Generator, np.ndarray, np.ndarray], Drawn]


def planted(dimensions: int, change: Change) -> Sample:
    generator = np.random.default_rng()

    def chunks() -> Iterator[np.ndarray]:
        for _ in range(SIZES[dimensions] // CHUNK):
            unit = _normalised(generator.normal(size=(CHUNK, dimensions)))
            radius = generator.gamma(dimensions, size=CHUNK)
            unit, radius = change(generator, unit, radius)
            yield unit * radius[:, None]

    return Sample(chunks())


class Radii(NamedTuple):
    """A sample of which only the radii are looked at."""

    radius: np.ndarray
    dimensions: int


def planted_radii(dimensions: int, change: Change) -> Radii:
    generator = np.random.default_rng()
    nowhere = np.broadcast_to(1.0, (SIZES[dimensions], dimensions))
    radius = generator.gamma(dimensions, size=len(nowhere))
    return Radii(change(generator, nowhere, radius)[1], dimensions)


@pytest.mark.parametrize("dimensions", SIZES)
def test_control_numpy_draws_are_accepted(dimensions: int, law: Law) -> None:
    true = planted(dimensions, lambda g, unit, radius: (unit, radius))
    for check in CHECKS:
        getattr(law, check)(true)


def _normalised(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=1)[:, None]


def _stretched(g: np.random.Generator, unit: np.ndarray, radius: np.ndarray) -> Drawn:
    axes = np.ones(unit.shape[1])
    axes[0] = 1.05
    return _normalised(unit * axes), radius


def _favoured_sign(g: np.random.Generator, unit: np.ndarray, radius: np.ndarray) -> Drawn:
    positive = np.where(g.random(len(unit)) < 0.1, np.abs(unit[:, -1]), unit[:, -1])
    return np.column_stack([unit[:, :-1], positive]), radius


def _copied(values: np.ndarray, step: int, g: np.random.Generator) -> np.ndarray:
    """Give every other word (document, for a step of LENGTH) its neighbour's value at times."""
    pairs = values.reshape(-1, 2, step, *values.shape[1:])
    copied = g.random((len(pairs), step)) < 0.05
    pairs[:, 1][copied] = pairs[:, 0][copied]
    return values


def _of_radius(draw: Callable[[np.random.Generator, int, int], np.ndarray]) -> Change:
    return lambda g, unit, radius: (unit, draw(g, unit.shape[1], len(unit)))


CONTROLS: dict[str, tuple[str, Change, tuple[int, ...]]] = {
    "half the noise": ("radius", lambda g, u, r: (u, r / 2), (1, 2, 50, 300)),
    "two percent less noise": ("radius", lambda g, u, r: (u, r / 1.02), (1, 2, 50, 300)),
    "two percent more noise": ("radius", lambda g, u, r: (u, r * 1.02), (1, 2, 50, 300)),
    "Gamma(d - 1)": ("radius", _of_radius(lambda g, d, n: g.gamma(d - 1, size=n)), (2, 50, 300)),
    "Gamma(d + 1)": ("radius", _of_radius(lambda g, d, n: g.gamma(d + 1, size=n)), (1, 2, 50, 300)),
    "normals alone": (
        "radius",
        _of_radius(lambda g, d, n: np.sqrt(d * g.chisquare(d, size=n))),
        (1, 50),
    ),
    "a tail cut off": (
        "radius",
        lambda g, u, r: (u, np.minimum(r, stats.gamma(u.shape[1]).isf(TAIL))),
        (1, 2, 50),
    ),
    "an axis favoured": ("direction", _stretched, (2, 50, 300)),
    "a sign favoured": ("direction", _favoured_sign, (1, 2, 50, 300)),
    "independent Laplace": (
        "direction",
        lambda g, u, r: (_normalised(g.laplace(size=u.shape)), r),
        (2, 50),
    ),
    "coordinates in order": ("direction", lambda g, u, r: (np.sort(u, axis=1), r), (2, 50)),
    "half a turn": ("direction", lambda g, u, r: (u * np.sign(u[:, 1:2]), r), (2, 50)),
    "longer in front": (
        "radius_and_direction",
        lambda g, u, r: (u, np.where(u[:, 0] > 0, 1.05, 0.95) * r),
        (1, 2, 50),
    ),
    "words alike": ("words", lambda g, u, r: (_copied(u, 1, g), r), (1, 2, 50)),
    "words of like radius": ("words", lambda g, u, r: (u, _copied(r, 1, g)), (1, 50)),
    "documents alike": ("documents", lambda g, u, r: (_copied(u, LENGTH, g), r), (1, 50)),
    "documents of like radius": ("documents", lambda g, u, r: (u, _copied(r, LENGTH, g)), (1, 50)),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("control", "dimensions"), [(name, d) for name, (_, _, many) in CONTROLS.items() for d in many]
)
def test_control_another_law_is_rejected(control: str, dimensions: int, law: Law) -> None:
    check, change, _ = CONTROLS[control]
    wrong = (planted_radii if check == "radius" else planted)(dimensions, change)
    with pytest.raises(AssertionError):
        getattr(law, check)(wrong)


# BRR. Of 2^16 codes of 256 bits, n = 2^24. At epsilon = 5 the flip probability of .0067 makes
# 112,000 flips, deviation 334: a rate 5 % off is 17 deviations away; at .01 the probability of
# .4975 is 20 deviations from 1/2. At 20 no flip is expected in a run, which tells 10 from 20 and
# no more: there the digits are tested one by one (mechanisms/test_brr.py). A copy with
# probability r = 5 % adds n r^2 / 2 = 21,000 to the statistic of a 2 x 2 table.

CODES, WORDS = 1 << 16, 4
EPSILONS = [Fraction(1, 100), Fraction(1, 2), Fraction(1), Fraction(5), Fraction(20)]
SEEN = EPSILONS[:-1]
EVERY = ~np.uint64(0)
# The first of two bits that are 1, 8 or 32 apart, each bit in one pair.
FIRST = {1: 0x5555555555555555, 8: 0x00FF00FF00FF00FF, 32: 0x00000000FFFFFFFF}


def rate(epsilon: Fraction | float) -> float:
    return 1 / (1 + math.exp(epsilon))


def ones(words: np.ndarray) -> int:
    return int(np.bitwise_count(words).sum(dtype=np.int64))


class Flips:
    """Which bits flipped, and which were set before: uint64 (CODES, WORDS) both."""

    def __init__(self, flipped: np.ndarray, codes: np.ndarray) -> None:
        self.flipped, self.codes = flipped, codes

    @property
    def documents(self) -> np.ndarray:
        return self.flipped.reshape(-1, LENGTH, WORDS)


class FlipLaw:
    def __init__(self, checks: Any) -> None:
        self._checks = checks

    def rate(self, flips: Flips, p: float) -> None:
        self._checks.binomial(ones(flips.flipped), 64 * flips.flipped.size, p)

    def positions(self, flips: Flips, p: float) -> None:
        """Every position flips as often: binomial columns, of variance n p (1 - p)."""
        columns = np.concatenate(
            [((flips.flipped >> np.uint64(b)) & np.uint64(1)).sum(axis=0) for b in range(64)]
        )
        statistic = ((columns - CODES * p) ** 2).sum() / (CODES * p * (1 - p))
        assert stats.chi2.sf(statistic, len(columns)) >= self._checks.alpha

    def codes(self, flips: Flips, p: float) -> None:
        """The number of flips in a code is binomial: its bits are independent all together."""
        bits = 64 * WORDS
        counts = np.bitwise_count(flips.flipped).sum(axis=1)
        edges = np.unique(stats.binom.ppf(np.arange(1, 10) / 10, bits, p))
        observed = np.bincount(np.searchsorted(edges, counts), minlength=len(edges) + 1)
        chances = np.diff(stats.binom.cdf(edges, bits, p), prepend=0, append=1)
        self._checks.chi_square(observed, chances)

    def bits(self, flips: Flips, p: float) -> None:
        """Neighbours in a word, and equal bits of two words, are independent."""
        for lag, first in FIRST.items():
            shifted = flips.flipped >> np.uint64(lag)
            self._joint(flips.flipped, shifted, p, np.uint64(first))
        self._joint(flips.flipped[:, ::2], flips.flipped[:, 1::2], p)
        self._joint(flips.flipped[:, :2], flips.flipped[:, 2:], p)

    def words(self, flips: Flips, p: float) -> None:
        """The words of a document are independent."""
        self._joint(flips.flipped[::2], flips.flipped[1::2], p)

    def documents(self, flips: Flips, p: float) -> None:
        """So are the words at one place of two equal documents."""
        self._joint(flips.documents[::2], flips.documents[1::2], p)

    def values(self, flips: Flips, p: float) -> None:
        """Set bits flip as often as others."""
        for these in (flips.codes, ~flips.codes):
            self._checks.binomial(ones(flips.flipped & these), ones(these), p)

    def _joint(
        self, one: np.ndarray, other: np.ndarray, p: float, among: np.uint64 = EVERY
    ) -> None:
        pairs = [(~one, ~other), (~one, other), (one, ~other), (one, other)]
        counts = [ones(a & b & among) for a, b in pairs]
        self._checks.chi_square(counts, np.outer([1 - p, p], [1 - p, p]))


FLIP_CHECKS = ["rate", "positions", "codes", "bits", "words", "documents", "values"]


@pytest.fixture(scope="module")
def flip_law(checks: Any) -> FlipLaw:
    return FlipLaw(checks)


@pytest.fixture(scope="module", params=EPSILONS, ids=str)
def drawn(request: pytest.FixtureRequest, checks: Any) -> tuple[Fraction, Flips]:
    documents = CODES // LENGTH
    stream, addresses = checks.stream_and_addresses(documents)
    parts = stream.parts(addresses, np.arange(documents + 1, dtype=np.int64) * LENGTH)
    codes = np.random.default_rng().integers(0, 1 << 64, (CODES, WORDS), dtype=np.uint64)
    noisy = flip(codes, [request.param], np.zeros(CODES, np.int64), stream, parts)
    return request.param, Flips(noisy ^ codes, codes)


@pytest.mark.parametrize("check", FLIP_CHECKS)
def test_bits_flip(drawn: tuple[Fraction, Flips], flip_law: FlipLaw, check: str) -> None:
    # Kills: a wrong rate, words that share planes, an OR for an XOR, flips that follow the code.
    epsilon, flips = drawn
    if epsilon in SEEN or check in ("rate", "values"):
        getattr(flip_law, check)(flips, rate(epsilon))


@pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
def test_control_another_rate_is_rejected(epsilon: Fraction, checks: Any) -> None:
    # The noise of half and of twice epsilon, exp(-epsilon), and 5 % off either way.
    p, size = rate(epsilon), 64 * CODES * WORDS
    wrong = [rate(epsilon / 2), rate(2 * epsilon), p * 1.05, p / 1.05, math.exp(-epsilon)]
    # No flip is seen at 20, and exp(-5) is within 1 % of the rate at 5.
    for other in wrong[: {20: 1, 5: 4}.get(int(epsilon), 5)]:
        flips = int(np.random.default_rng().binomial(size, other))
        with pytest.raises(AssertionError):
            checks.binomial(flips, size, p)


def planted_words(p: float, shape: tuple[int, ...] = (CODES, WORDS)) -> np.ndarray:
    """NumPy's: bits of probability p, a multiple of 2^-16, from its last digit to its first."""
    generator = np.random.default_rng()
    less = np.zeros(shape, dtype=np.uint64)
    for digit in reversed(f"{round(p * (1 << 16)):016b}"):
        drawn = generator.integers(0, 1 << 64, shape, dtype=np.uint64)
        less = ~drawn | less if digit == "1" else ~drawn & less
    return less


def _copy(one: np.ndarray, other: np.ndarray) -> None:
    """In place, and about every twentieth bit of them."""
    copied = planted_words(0.05, one.shape)
    other ^= (one ^ other) & copied


FLIP_CONTROLS: dict[str, Callable[[Flips], None]] = {
    "bits": lambda f: _copy(f.flipped[:, :2], f.flipped[:, 2:]),
    "words": lambda f: _copy(f.flipped[::2], f.flipped[1::2]),
    "documents": lambda f: _copy(f.documents[::2], f.documents[1::2]),
    # One bit of 256 never flips; a code in four has half of its bits from the other half; and a
    # twentieth of the set bits never flips.
    "positions": lambda f: f.flipped.__iand__(
        np.array([EVERY, EVERY, EVERY, EVERY - np.uint64(1)])
    ),
    "codes": lambda f: np.copyto(f.flipped[::4, :2], f.flipped[::4, 2:]),
    "values": lambda f: f.flipped.__iand__(~(f.codes & planted_words(0.05))),
}


@pytest.mark.parametrize("epsilon", SEEN, ids=str)
@pytest.mark.parametrize("check", FLIP_CONTROLS)
def test_control_dependent_flips_are_rejected(
    epsilon: Fraction, check: str, flip_law: FlipLaw
) -> None:
    # NumPy's digits end with the 16th, so that the rate which they make is what is tested.
    p = round(rate(epsilon) * (1 << 16)) / (1 << 16)
    flips = Flips(planted_words(p), planted_words(0.5))
    getattr(flip_law, check)(flips, p)
    FLIP_CONTROLS[check](flips)
    with pytest.raises(AssertionError):
        getattr(flip_law, check)(flips, p)
