"""Audits of the noise on words, as the release draws it: Madlib's on vectors, BRR's on bits.

In many dimensions an event tells little of a loss of epsilon a unit of distance: nearly all noise
has a far smaller one. So the scale of the noise is bounded by its length and by its part along the
direction in which it varies least; what is fixed in it (a direction without noise, coordinates that
share a draw, bits that flip together) is looked for as the combination of coordinates, of their
squares or of flips that varies least, which a neighbour's noise does not share; and the law of the
losses of several words is compared with the document's epsilon and delta.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import optimize, special, stats

from quietcorpus.evaluation.audits.exact import affordable
from quietcorpus.evaluation.audits.findings import Exact, Sampled
from quietcorpus.evaluation.audits.lower_bound import (
    LowerBound,
    check,
    epsilon_at_least,
    rate_at_least,
)
from quietcorpus.evaluation.intervals import share_at_least
from quietcorpus.mechanisms.accounting.guarantees import round_up
from quietcorpus.mechanisms.keystream import ADDRESS_BYTES
from quietcorpus.mechanisms.words.brr import flip_bounds
from quietcorpus.mechanisms.words.document_loss import Noise
from quietcorpus.mechanisms.words.mechanism import NoiseDrawer
from quietcorpus.transforms.privatizers.words import WordPrivatizer

from ...audit.inputs import LOSS

_NUMBERS = 1 << 24  # about as many are drawn for one audit of noise
_LEAST = 1000  # draws at least, whatever they cost
_BITS = 128
_CLOSE = 40  # significant bits of a chance
_WORDS, _DELTA = 16, Fraction(1, 100)  # of documents whose losses are added up
_CELLS = 4096

Floats = npt.NDArray[np.float64]
Make = Callable[[], WordPrivatizer]
Draw = Callable[[int], Floats]
"""A function of a number of draws that returns the noise of each, float64 (draws, k)."""


def of_noise(make: Make, epsilon: Fraction, vectors: npt.NDArray[np.float32]) -> list[Sampled]:
    """Return audits of the noise on vectors, float32 (V, d), in their own dimension.

    `make` builds the privatizer of a release under a fresh key.
    """
    dimensions = vectors.shape[1]
    draw = partial(_noise, make, epsilon, vectors[0])
    most = max(_LEAST, _NUMBERS // dimensions)
    directions = {"the last dimension": np.eye(dimensions)[-1]}
    if dimensions > 1:
        directions["a random direction"] = np.random.default_rng().normal(size=dimensions)
    found = [
        Sampled(
            "noise's length, a unit of distance",
            round_up(epsilon),
            f"If noise in {dimensions} dimensions has Madlib's form, its epsilon is at least that "
            "much.",
            partial(_lengths, draw, dimensions),
            most=most,
        ),
        Sampled(
            "noise along its weakest direction, a unit of distance",
            round_up(epsilon),
            "Of the direction in which half of the draws varied least, the others' parts along it "
            "have Madlib's law with at least that epsilon.",
            partial(_weakest_part, draw, dimensions),
            most=most,
        ),
        *(
            _of_losses(make, epsilon, vectors[0], direction / np.linalg.norm(direction), name)
            for name, direction in directions.items()
        ),
    ]
    if dimensions > 1:
        apart = LOSS / float(epsilon)
        found.append(
            Sampled(
                "noise's squares that vary least",
                round_up(epsilon * Fraction(apart)),
                f"The combination of squared coordinates that varies least was compared between "
                f"noise and noise on a point {apart:.4g} apart.",
                _regular(draw, np.square, lambda rows, i: _moved(rows, i, apart)),
                most=most,
            )
        )
    return found


def of_line(make: Make, epsilon: Fraction, line: npt.NDArray[np.float32]) -> Sampled:
    """Return the audit of noise in one dimension, where events tell most of a loss.

    `line` are the vectors of two words, float32 (2, 1), of an index of one dimension.
    """
    apart = Fraction(float(line[1, 0])) - Fraction(float(line[0, 0]))

    def points(word: int, count: int) -> npt.NDArray[np.float32]:
        return _noisy(make, epsilon, word, count)  # float32, as words are found by

    return Sampled(
        "noise in one dimension",
        round_up(epsilon * apart),
        f"Noise was added to two points {float(apart):.4g} apart.",
        partial(epsilon_at_least, points, 1, 2),
    )


def of_flips(make: Make, epsilon: Fraction, codes: npt.NDArray[np.uint64]) -> list[Exact | Sampled]:
    """Return the audits of BRR's bit flips: their chance, and whether bits flip by themselves."""

    def draw(count: int) -> Floats:
        flips = _noisy(make, epsilon, 0, count) ^ codes[0]
        return np.unpackbits(np.ascontiguousarray(flips).view(np.uint8), axis=1).astype(np.float64)

    def other(rows: Floats, bit: int) -> Floats:
        rows[:, bit] = 1 - rows[:, bit]
        return rows

    bits = 64 * codes.shape[1]
    return [
        Exact(
            "flips of a bit, a unit of distance",
            round_up(epsilon),
            "The chances that a bit flips, and that it does not, were compared, by the binary "
            "digits that uniforms are compared with.",
            partial(flip_loss, epsilon),
        ),
        Sampled(
            "flips that vary least",
            round_up(epsilon),
            f"The combination of {bits} bits' flips that varies least was compared between a code "
            "and one that differs in a bit.",
            _regular(draw, lambda rows: rows, other),
            most=max(_LEAST, _NUMBERS // bits),
        ),
    ]


def flip_loss(epsilon: Fraction) -> float:
    """Bound from above the log-ratio of the chances that a bit flips and that it does not."""
    # A chance may be tiny: take as many bits as give it `_CLOSE` significant ones.
    bits = _BITS
    while not (low := flip_bounds(epsilon, affordable(bits))[0]) >> _CLOSE:
        bits *= 2
    high, one = flip_bounds(epsilon, bits)[1], 1 << bits
    return max(math.log(one - low) - math.log(low), math.log(high) - math.log(one - high))


def _of_losses(
    make: Make, epsilon: Fraction, vector: npt.NDArray[np.float32], along: Floats, name: str
) -> Sampled:
    """Return the audit of documents' losses, all words of which move along one direction."""
    dimensions = len(along)
    apart = Fraction(math.sqrt(dimensions / (2 * _WORDS)) / float(epsilon))
    shift, rate = float(apart) * along, float(epsilon)

    def losses(other: bool, count: int) -> Floats:
        found = np.zeros(count)
        for _ in range(_WORDS):
            points = _noise(make, epsilon, vector, count) + (shift if other else 0)
            near, far = (np.linalg.norm(points - place, axis=1) for place in (0, shift))
            found += rate * (far - near)
        return found[:, None]

    return Sampled(
        f"noise's losses along {name}",
        round_up(Noise(dimensions).document_epsilon(epsilon, apart, _WORDS, _DELTA)),
        f"Losses of documents of {_WORDS} words were added up, all words of which move "
        f"{float(apart):.4g} along {name}.",
        partial(epsilon_at_least, losses, False, True, delta=float(_DELTA)),
        delta=float(_DELTA),
        most=max(_LEAST, _NUMBERS // (4 * dimensions)),
    )


def _lengths(draw: Draw, dimensions: int, draws: int, level: float) -> LowerBound:
    check(draws, level)
    bound = rate_at_least(np.linalg.norm(draw(draws), axis=1), dimensions, level)
    return LowerBound(bound, math.inf, draws, "the sum of the noise's lengths")


def _weakest_part(draw: Draw, dimensions: int, draws: int, level: float) -> LowerBound:
    """Bound epsilon from below by parts of noise along one direction, as `rate_at_least` does.

    The share of parts that are shorter than the law's median is a binomial's: what it is at least
    belongs to a quantile, and the ratio of the quantiles to an epsilon.
    """
    check(draws, level)
    noise, half = draw(draws), draws // 2
    parts = np.abs(noise[half:] @ _varying_least(noise[:half]))
    place = np.median(np.abs(noise[:half] @ _varying_least(noise[:half])))
    low = share_at_least(int((parts <= place).sum()), draws - half, level)
    bound = _part_at(dimensions, low) / place if place > 0 else math.inf
    return LowerBound(bound, math.inf, draws, f"a part along it is at most {place:.4g}")


def _part_at(dimensions: int, chance: float) -> float:
    """Return the quantile of the length of a part along a direction, in units of 1 / epsilon."""
    shares = (np.arange(_CELLS) + 0.5) / _CELLS
    scale = 2 * np.sqrt(stats.gamma.ppf(shares, (dimensions + 1) / 2))

    def over(length: float) -> float:
        return float(special.erf(length / scale).mean()) - chance

    return float(optimize.brentq(over, 0.0, 64.0 * math.sqrt(dimensions)))


def _regular(
    draw: Draw, features: Callable[[Floats], Floats], moved: Callable[[Floats, int], Floats]
) -> Callable[[int, float], LowerBound]:
    """Return the search for a combination of features that noise keeps, and a neighbour's does not.

    `moved` returns the noise of a neighbour that differs in one coordinate.
    """

    def find(draws: int, level: float) -> LowerBound:
        check(draws, level)
        learnt = features(draw(draws))
        weights = _varying_least(learnt)
        centre, place = np.median(learnt @ weights), int(np.abs(weights).argmax())

        def seen(other: bool, count: int) -> Floats:
            rows = draw(count)
            own = features(moved(rows, place) if other else rows)
            return np.abs(own @ weights - centre)[:, None]

        return epsilon_at_least(seen, False, True, draws, level)

    return find


def _varying_least(rows: Floats) -> Floats:
    """Return the direction of least variance of rows, float64 (k,)."""
    covariance = np.atleast_2d(np.cov(rows, rowvar=False))
    found: Floats = np.linalg.eigh(covariance)[1][:, 0]
    return found


def _moved(rows: Floats, place: int, by: float) -> Floats:
    rows[:, place] += by
    return rows


def _noise(
    make: Make, epsilon: Fraction, vector: npt.NDArray[np.float32], count: int
) -> npt.NDArray[np.float64]:
    """Draw the noise on the first word, whose vector is given: float64 (count, d)."""
    noise: Floats = _noisy(make, epsilon, 0, count).astype(np.float64) - vector
    return noise


def _noisy(make: Make, epsilon: Fraction, word: int, count: int) -> npt.NDArray[Any]:
    """Draw noisy vectors or codes of one word, at random addresses, under a fresh key."""
    addresses = np.frombuffer(secrets.token_bytes(ADDRESS_BYTES * count), "<u8").reshape(-1, 2)
    words = np.full(count, word, dtype=np.int32)
    privatizer = make()
    assert isinstance(privatizer.drawer, NoiseDrawer)
    which = np.zeros(count, np.int64)
    return privatizer.drawer.noisy(words, privatizer.randomness([epsilon], which, addresses))
