"""The privacy loss of one word under Madlib: its law, rounded so that no loss is understated.

In units of 1 / epsilon the noise z has a density proportional to exp(-||z||), and the vectors of
two words are a = epsilon d apart, along a unit vector e. The loss of an output is t = ||z - a e||
- ||z||, which lies in [-a, a]. Let s = ||z|| + ||z - a e||. In the spheroidal coordinates xi = s /
a >= 1 and tau = t / a, whose foci are the two vectors, the element of volume in D >= 2 dimensions
is proportional to (xi^2 - tau^2) ((xi^2 - 1) (1 - tau^2))^((D - 3) / 2), and the density to exp(-a
xi / 2) exp(a tau / 2). So tau has the density, up to a constant,

    f(tau) = exp(a tau / 2) (1 - tau^2)^((D - 3) / 2) (r + 1 - tau^2),

where r is the mean of xi^2 - 1 under exp(-a xi / 2) (xi^2 - 1)^((D - 3) / 2). Its integrals are
modified Bessel functions (DLMF 10.32.8): r = (2 (D - 1) / a) K_(D/2)(a / 2) / K_(D/2 - 1)(a / 2).
In one dimension the loss exceeds t < a with probability 1 - exp(-(a - t) / 2) / 2 (Laplace).

The noise is symmetric, so that the loss of the other word against this one has the same law: one
direction is enough.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy

Floats = npt.NDArray[np.float64]

_MARGIN = 2.0**-30
_MOST_GROWTH = 300.0


def upper_masses(dimensions: int, reach: float, cells: int) -> Floats:
    """Return masses on the upper ends of equal cells of [-reach, reach], float64 (cells,).

    Their survival function is nowhere below the loss's: what exceeds t with some probability under
    the loss's law exceeds it with at least that probability under theirs. Hence the expectation of
    every increasing function of the loss, or of a sum of independent losses, is not understated.

    In D >= 2 dimensions f is a weight w, (1 - tau^2)^(-1/2) where D is 2 and else 1, times a
    log-concave g. In a cell, log g is above its chord and below its tangent at the middle. The
    moments of w are known: with them, Jensen's inequality and the convexity of exp bound the
    cell's mass from below and from above. The upper bounds, over the sum of the lower ones, are
    returned, from the top until they amount to 1. A margin covers floats; it is measured, not
    proved.

    Args:
        dimensions: D, from 1 on.
        reach: a, epsilon times the distance, above 0.
        cells: how many.
    """
    if dimensions == 1:
        from_top = np.linspace(0.0, 2 * reach, cells + 1)[::-1]
        survival = 1 - np.exp(-from_top / 2) / 2
        survival[0], survival[-1] = 1, 0
        laplace: Floats = -np.diff(survival)
        return laplace
    edges = np.linspace(-1.0, 1.0, cells + 1)
    middles = (edges[:-1] + edges[1:]) / 2
    half = 1 / cells
    weight, moment = _weights(dimensions, edges, middles)
    log_g, slope = _log_density(dimensions, reach, middles)
    ends, _ = _log_density(dimensions, reach, edges)
    peak = log_g.max()
    tilt = slope * half
    # cosh and sinh of `tilt` overflow in cells at the ends, whose g is next to nothing
    growth = log_g - peak + np.abs(tilt)
    if growth.max() > _MOST_GROWTH:  # cells so coarse that they tell nothing: the worst case
        return np.where(np.arange(cells) < cells - 1, 0.0, 1.0)
    grown = np.exp(growth)
    swing = np.sign(tilt) * moment / half
    high = grown * ((weight + swing) + (weight - swing) * np.exp(-2 * np.abs(tilt))) / 2
    chord = (ends[:-1] + ends[1:]) / 2 - peak
    with np.errstate(invalid="ignore"):
        chord += np.where(moment == 0, 0, (ends[1:] - ends[:-1]) / (2 * half) * moment / weight)
    low = weight * np.exp(chord)
    masses = np.minimum(1, high * ((1 + _MARGIN) / low.sum()))
    above = np.cumsum(masses[::-1])[::-1]
    kept: Floats = np.minimum(masses, np.maximum(0, 1 - (above - masses)))
    return kept


def _weights(
    dimensions: int, edges: Floats, middles: Floats
) -> tuple[Floats | float, Floats | float]:
    """Return the integrals of w, and of w times the distance from the middle, over each cell."""
    if dimensions > 2:
        return np.diff(edges), np.zeros(len(middles))
    weight = np.diff(np.arcsin(edges))
    return weight, -np.diff(np.sqrt((1 - edges) * (1 + edges))) - middles * weight


def _log_density(dimensions: int, reach: float, tau: Floats) -> tuple[Floats, Floats]:
    """Return log g and its derivative; log g is minus infinity at an end where g is 0."""
    power = (dimensions - 3) / 2 if dimensions > 2 else 0
    inside = (1 - tau) * (1 + tau)
    rest = _excess(dimensions, reach) + inside
    with np.errstate(divide="ignore", invalid="ignore"):
        log_g = reach / 2 * tau + np.log(rest) + (power * np.log(inside) if power else 0)
        slope = reach / 2 - 2 * tau / rest - (2 * power * tau / inside if power else 0)
    return log_g, slope


def _excess(dimensions: int, reach: float) -> float:
    """Return r, by the recurrence of Bessel functions' ratios, all of whose terms are positive."""
    x = reach / 2
    order, ratio = (
        (0.0, scipy.special.k1e(x) / scipy.special.k0e(x)) if dimensions % 2 == 0 else (-0.5, 1.0)
    )
    while order < dimensions / 2 - 1:
        order += 1
        ratio = 2 * order / x + 1 / ratio
    return float((dimensions - 1) / x * ratio)
