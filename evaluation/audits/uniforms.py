"""Lower bounds on how far draws are from the law that they should have, with confidence.

Draws come as uniforms: numbers that are independent and uniform on [0, 1] if the law is as it is
stated (Rosenblatt: Remarks on a multivariate transformation, 1952). A bound is 0 where draws show
nothing, and above 0 for draws of the stated law with a probability of at most the level.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from .lower_bound import LowerBound

Uniforms = npt.NDArray[np.float64]
_LEAST_SPREAD = 3.0
"""A uniform number on [-1, 1] has tails no heavier than a normal one of variance 1 / 3."""


def distance_at_least(samples: Mapping[str, Uniforms], level: float) -> LowerBound:
    """Compute a lower bound on a sample's largest distance from the uniform law.

    The distance is Kolmogorov's: the largest difference of the two distribution functions. For a
    sample of n, the one that is seen is above the true one by sqrt(log(2 / level) / 2n) or more
    with a probability of at most `level` (Massart 1990). The samples share the level.

    Power: a distance D is shown, by 4 deviations, from n = ((sqrt(log(2 / level) / 2) + 2) / D)^2.

    Args:
        samples: by name, the subject of a sentence: float64 (n,) each, independent within a sample.
        level: the probability, at most, that a bound on draws of the law is above 0.
    """
    found = LowerBound(0.0, 0.0, 0, "no sample differs from its law")
    reach, draws = 0.0, 0
    for name, sample in samples.items():
        draws = max(draws, len(sample))
        if not len(sample):
            continue
        error = math.sqrt(math.log(2 * len(samples) / level) / (2 * len(sample)))
        steps = np.arange(len(sample) + 1) / len(sample)
        ordered = np.sort(sample)
        seen = float(max((ordered - steps[:-1]).max(), (steps[1:] - ordered).max()))
        reach = max(reach, 1 - error)
        if seen - error > found.epsilon:
            event = f"the distribution of {name} differs by {seen:.3g}"
            found = LowerBound(seen - error, 0.0, 0, event)
    return LowerBound(found.epsilon, max(0.0, reach), draws, found.event)


def dependence_at_least(
    uniforms: Uniforms, level: float, beside: Uniforms | None = None
) -> LowerBound:
    """Compute a lower bound on a correlation, where the law has independent numbers.

    Correlated are the numbers, and how far each is from the middle: of every two columns in a row;
    of all numbers and those 1, 2, 3, ... places on, row by row; and of every column and one of
    `beside`. A number that is repeated has a correlation of 1.

    A sum of n products of independent uniforms on [-1, 1] exceeds sqrt(2n log(2 / level) / 3) with
    a probability of at most `level`, and so does one of products in which each second factor is
    independent of all before (a martingale): a uniform's tails are below a normal's of variance
    1 / 3 (Arbel, Marchal and Nguyen: On strict sub-Gaussianity, 2020). All share the level.

    Power: a share s of numbers that repeat another gives s, by 4 deviations, where n is at least
    ((sqrt(6 log(2 / level)) + 4) / s)^2.

    Args:
        uniforms: float64 (n, k).
        level: as in `distance_at_least`.
        beside: float64 (n, m): numbers that the draws must not depend on, in [-1, 1].
    """
    rows, columns = uniforms.shape
    sides = {"value": 2 * uniforms - 1, "distance from the middle": 1 - 4 * np.abs(uniforms - 0.5)}
    tables: list[tuple[str, npt.NDArray[np.float64], int]] = []
    for one, other in itertools.product(sides, repeat=2):
        products = np.abs(sides[one].T @ sides[other])
        np.fill_diagonal(products, 0.0)
        tables.append((f"of {{}} by {one} with {{}} by {other} in a row", products, rows))
    for one, side in sides.items():
        if beside is not None and beside.shape[1]:
            products = np.abs(side.T @ beside)
            tables.append((f"of {{}} by {one} with input {{}}", products, rows))
        tables.append((f"{{}}{{}} places on, by {one}", _lagged(side.ravel())[None], 0))
    tests = sum(products.size for _, products, _ in tables)
    found = LowerBound(0.0, 0.0, rows, "no number goes with another")
    reach = 0.0
    for name, products, count in tables:
        # Of all n k numbers, those that are L places apart make n k - L products: half, at least.
        counts = count or rows * columns - 1 - np.arange(products.shape[1])
        error = np.sqrt(2 * counts * math.log(2 * tests / level) / 3) / counts * _LEAST_SPREAD
        seen = products / counts * _LEAST_SPREAD
        reach = max(reach, 1 - float(np.min(error)))
        place = np.unravel_index(int((seen - error).argmax()), seen.shape)
        bound = float((seen - error)[place])
        if bound > found.epsilon:
            which = [str(number + 1) for number in place]
            if not count:
                which[0] = "numbers "
            event = f"the correlation {name.format(*which)} is {float(seen[place]):.3g}"
            found = LowerBound(bound, 0.0, rows, event)
    return LowerBound(found.epsilon, max(0.0, reach), rows, found.event)


def _lagged(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Compute |sums of products| of values 1, 2, ... places apart, up to half of their number."""
    size = len(values)
    if size < 2:
        return np.zeros(0)
    spectrum = np.fft.rfft(values, 1 << (2 * size - 1).bit_length())
    sums: npt.NDArray[np.float64] = np.fft.irfft(np.abs(spectrum) ** 2)[1 : size // 2 + 1]
    return np.abs(sums)
