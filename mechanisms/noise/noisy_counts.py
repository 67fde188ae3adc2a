"""The posterior of a count, given the noisy count and the noise's law.

X is Poisson, and S = X + Z is observed, with Z two-sided geometric: Pr[Z = z] is proportional to
decay^|z|. So Pr[X = x | S = s] is proportional to mean^x / x! * decay^|s - x|, which rises up to a
mode and falls from there. This is post-processing of S: it costs nothing.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from quietcorpus.compiled import compiled, inlined

_NEGLIGIBLE = 1e-9
_LEAST_DECAY, _MOST_DECAY = 1e-300, 1 - 1e-9


def decay_of(rate: float) -> float:
    """Compute exp(-rate), kept within the range that floats can work with."""
    return min(max(math.exp(-rate), _LEAST_DECAY), _MOST_DECAY)


def relative(
    noisy: npt.NDArray[np.int32], means: npt.NDArray[np.float32], decay: float
) -> npt.NDArray[np.float32]:
    """Compute E[X | S = noisy] / mean, float32 of the same shape.

    Args:
        noisy: int32, shape (n, K).
        means: positive, float32, shape (n, K).
        decay: exp(-rate) of the noise, between 0 and 1.
    """
    found: npt.NDArray[np.float32] = _relative(noisy, means, decay)
    return found


def draw(
    noisy: npt.NDArray[np.int32],
    means: npt.NDArray[np.float32],
    decay: float,
    uniforms: npt.NDArray[np.float64],
) -> npt.NDArray[np.int32]:
    """Draw X given S = noisy by uniforms from [0, 1); all shapes are (n, K)."""
    found: npt.NDArray[np.int32] = _draw(noisy, means, decay, uniforms)
    return found


@inlined
def _mode(noisy, mean, decay):  # type: ignore[no-untyped-def]
    """Return the mode: the law is Poisson of mean / decay below `noisy`, of mean * decay above."""
    above = int(mean * decay)
    if above >= noisy:
        return above
    if mean >= noisy * decay:
        return noisy
    return int(mean / decay)


@inlined
def _up(x, noisy, mean, decay):  # type: ignore[no-untyped-def]
    """Return Pr[x + 1] / Pr[x]."""
    return mean / (x + 1) * (1 / decay if x < noisy else decay)


@compiled
def _relative(noisy, means, decay):  # type: ignore[no-untyped-def]
    found = np.empty(means.shape, dtype=np.float32)
    for i in range(means.shape[0]):
        for k in range(means.shape[1]):
            mean, seen = float(means[i, k]), noisy[i, k]
            mode = _mode(seen, mean, decay)
            # All weights are relative to the mode's, and sums of (x - mode) keep their digits.
            total, excess = 1.0, 0.0
            weight, x = 1.0, mode
            while weight > _NEGLIGIBLE * total:
                weight *= _up(x, seen, mean, decay)
                x += 1
                total += weight
                excess += weight * (x - mode)
            weight, x = 1.0, mode
            while x > 0 and weight > _NEGLIGIBLE * total:
                x -= 1
                weight /= _up(x, seen, mean, decay)
                total += weight
                excess += weight * (x - mode)
            found[i, k] = (mode + excess / total) / mean
    return found


@compiled
def _draw(noisy, means, decay, uniforms):  # type: ignore[no-untyped-def]
    found = np.empty(means.shape, dtype=np.int32)
    for i in range(means.shape[0]):
        for k in range(means.shape[1]):
            mean, seen = float(means[i, k]), noisy[i, k]
            mode = _mode(seen, mean, decay)
            total = 1.0
            weight, x = 1.0, mode
            while weight > _NEGLIGIBLE * total:
                weight *= _up(x, seen, mean, decay)
                x += 1
                total += weight
            weight, x = 1.0, mode
            while x > 0 and weight > _NEGLIGIBLE * total:
                x -= 1
                weight /= _up(x, seen, mean, decay)
                total += weight
            # The same walk once more, until it has gone as far as the uniform says.
            left = uniforms[i, k] * total - 1.0
            weight, x = 1.0, mode
            while left >= 0 and weight > _NEGLIGIBLE:
                weight *= _up(x, seen, mean, decay)
                x += 1
                left -= weight
            if left >= 0:
                weight, x = 1.0, mode
                while left >= 0 and x > 0:
                    x -= 1
                    weight /= _up(x, seen, mean, decay)
                    left -= weight
            found[i, k] = x
    return found
