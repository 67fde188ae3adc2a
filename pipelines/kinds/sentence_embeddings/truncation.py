"""Audits of truncation: noisy means of sentences that are clipped to a box."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

from quietcorpus.evaluation.audits.exact import noise_masses, shift_loss
from quietcorpus.evaluation.audits.findings import Exact, Sampled
from quietcorpus.evaluation.audits.uniforms import Uniforms
from quietcorpus.mechanisms.accounting.guarantees import round_up
from quietcorpus.mechanisms.sentences.truncation import STEPS, Box, NoisyMeans, Truncation
from quietcorpus.transforms.privatizers.sentences import NoisySum

from ...audit.inputs import telling
from . import noisy_means
from .documents import Releases
from .noisy_means import Noise, Pair

_BEYOND = 16
_ALMOST_ONE = 1 - 2.0**-53


@dataclass(frozen=True)
class GeometricLaw:
    """Independent two-sided geometric noise of a stated rate in each dimension."""

    rate: float
    most: int
    order = 1

    def likeliest(self, dimensions: int) -> float:
        """Return the chance of no noise at all."""
        return math.tanh(self.rate / 2) ** dimensions

    def uniforms(self, noise: Noise) -> tuple[Uniforms, npt.NDArray[np.bool_]]:
        """Return the law's distribution function of all noise, and that it is of every row.

        Within the step of a whole number, a uniform number is drawn.
        """
        sizes = np.abs(noise)
        decay = np.exp(-self.rate)
        tail = np.exp(-self.rate * sizes) / (1 + decay)  # Pr[Z >= size]
        mass = np.exp(-self.rate * sizes) * (1 - decay) / (1 + decay)
        below = np.where(noise > 0, 1 - tail, tail - mass)  # Pr[Z < z]
        drawn = below + np.random.default_rng().random(noise.shape) * mass
        return drawn, np.ones(len(noise), dtype=bool)

    def samples(self, noise: Noise) -> dict[str, Uniforms]:
        """Return the uniforms of each dimension, of all of them, and of the noise's length."""
        uniforms, _ = self.uniforms(noise)
        # Fisher's sum of logarithms, of how far from the middle each of them lies.
        sizes = np.minimum(np.abs(2 * uniforms - 1), _ALMOST_ONE)
        length = stats.chi2.cdf(-2 * np.log1p(-sizes).sum(axis=1), 2 * noise.shape[1])
        return {
            "the noise's length": length,
            "the noise in all dimensions": uniforms.ravel(),
            **{f"the noise in dimension {j + 1}": column for j, column in enumerate(uniforms.T)},
        }


def audits(releases: Releases, law: Truncation) -> list[Exact | Sampled]:
    """Return the audits of the noise's law, and of noisy means in all dimensions."""
    mechanism = releases.privatizer().mechanism
    assert isinstance(mechanism, NoisySum)
    assert isinstance(mechanism.noisy, NoisyMeans)
    noise, box = mechanism.noisy.noise, Box(*releases.candidates.box)
    epsilon, most = law.guarantee.epsilon, law.dimensions * STEPS
    stated = GeometricLaw(float(epsilon) / most, most)
    return [
        Exact(
            "documents: the noise's law",
            round_up(epsilon),
            f"Probabilities of outcomes were compared, as the sampler has them, at a distance of "
            f"{STEPS} in each of {law.dimensions} dimensions.",
            lambda: shift_loss(noise_masses(noise, STEPS + _BEYOND), most),
        ),
        *noisy_means.audits(releases, stated, pairs(box, float(epsilon))),
    ]


def pairs(box: Box, epsilon: float) -> list[Pair]:
    """Return sentences that are a step apart in the last dimension, and corners of the box."""
    size, most = len(box.low), len(box.low) * STEPS
    last = np.zeros(size)
    last[np.flatnonzero(box.width > 0)[-1:]] = 1 / STEPS
    share = telling(epsilon, most) / most
    some = np.random.default_rng(0).random(size) < max(share, 1 / size)
    found = []
    for name, moved in (
        ("a step apart, in the last dimension", last),
        ("apart in drawn dimensions", some.astype(np.float64)),
        ("far apart, in all dimensions", np.ones(size)),
    ):
        ends = np.stack([box.low, box.low + box.width * moved])
        found.append(Pair(name, ends.astype(np.float32)))
    return found
