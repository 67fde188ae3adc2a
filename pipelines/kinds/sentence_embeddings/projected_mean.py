"""Audits of noisy means of projected sentences."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from quietcorpus.evaluation.audits.exact import log_masses
from quietcorpus.evaluation.audits.findings import Exact, Sampled
from quietcorpus.evaluation.audits.uniforms import Uniforms
from quietcorpus.mechanisms.accounting.guarantees import round_up
from quietcorpus.mechanisms.noise.euclidean_noise import EuclideanNoise
from quietcorpus.mechanisms.sentences.projected_mean import (
    DIRECTION_UNIT,
    STEPS,
    Ball,
    NoisyProjections,
    ProjectedMean,
)
from quietcorpus.transforms.privatizers.sentences import NoisySum

from ...audit.inputs import telling
from . import noisy_means
from .documents import Releases
from .noisy_means import Noise, Pair

_OUTCOMES = 64
_BITS = 128
_MOST = 2 * STEPS  # by what a sentence may move sums
_FAR = 1.5 * STEPS  # from the centre, so that a sentence is drawn in
_WITHIN = 4 - STEPS
_OTHER_DIRECTIONS = 8


@dataclass(frozen=True)
class EuclideanLaw:
    """Noise on whole numbers of probability proportional to exp(-rate ||z||_2)."""

    rate: float
    order = 2
    most = _MOST

    def likeliest(self, dimensions: int) -> float:
        """Return an upper bound on the chance of no noise at all.

        Over the cube around z, exp(-rate ||z||) is at least exp(-rate (||x|| + sqrt(d) / 2)), whose
        integral over all x is exp(-rate sqrt(d) / 2) d! V_d / rate^d, V_d the unit ball's volume.
        """
        d = dimensions
        volume = d / 2 * math.log(math.pi) - math.lgamma(d / 2 + 1)
        others = math.lgamma(d + 1) + volume - self.rate * math.sqrt(d) / 2
        return math.exp(min(0.0, d * math.log(self.rate) - others))

    def filled(self, noise: Noise) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
        """Turn noise of the law, (n, d), into points of density proportional to exp(-rate ||x||).

        A point x is drawn from the cube around z, and is kept with probability
        exp(rate (||z|| - ||x|| - sqrt(d) / 2)), which is at most 1 there: what was proportional to
        exp(-rate ||z||) becomes exp(-rate ||x||), exactly. Returns the points that are kept, and
        of which rows they are.
        """
        generator = np.random.default_rng()
        points = noise + generator.random(noise.shape) - 0.5
        before, after = (
            np.linalg.norm(rows.astype(np.float64), axis=1) for rows in (noise, points)
        )
        chance = np.exp(self.rate * (before - after - np.sqrt(noise.shape[1]) / 2))
        kept = generator.random(len(noise)) < chance
        return points[kept], kept

    def uniforms(self, noise: Noise) -> tuple[Uniforms, npt.NDArray[np.bool_]]:
        """Return uniforms of such points: of their length, and of their direction, part by part."""
        points, kept = self.filled(noise)
        dimensions = noise.shape[1]
        if dimensions == 1:
            return _laplace(self.rate * points), kept
        # The sphere's law is that of each coordinate, as a share of the length that is left.
        left = np.sqrt(np.cumsum(points[:, ::-1] ** 2, axis=1))[:, ::-1]
        parts = [special.gammainc(dimensions, self.rate * left[:, 0])]
        for j in range(dimensions - 2):
            parts.append(_share(points[:, j] / left[:, j], dimensions - j))
        angle = np.arctan2(points[:, -1], points[:, -2]) / (2 * np.pi)
        return np.column_stack([*parts, angle % 1]), kept

    def samples(self, noise: Noise) -> dict[str, Uniforms]:
        """Return uniforms of the length, of every coordinate's share in it, and of directions'."""
        points, _ = self.filled(noise)
        dimensions = noise.shape[1]
        if dimensions == 1:
            return {"the noise": _laplace(self.rate * points).ravel()}
        length = np.linalg.norm(points, axis=1)
        drawn = np.random.default_rng(0).normal(size=(_OTHER_DIRECTIONS, dimensions))
        others = np.vstack([np.ones(dimensions), drawn])
        others /= np.linalg.norm(others, axis=1, keepdims=True)
        along = {f"dimension {j + 1}": points[:, j] for j in range(dimensions)}
        along["the diagonal"] = points @ others[0]
        along |= {f"other direction {j}": points @ others[j] for j in range(1, len(others))}
        return {
            "the noise's length": special.gammainc(dimensions, self.rate * length),
            **{
                f"the share of {name} in the noise's length": _share(part / length, dimensions)
                for name, part in along.items()
            },
        }


def audits(releases: Releases, law: ProjectedMean) -> list[Exact | Sampled]:
    """Return audits of the noise's law, and of noisy means in all directions."""
    mechanism = releases.privatizer().mechanism
    assert isinstance(mechanism, NoisySum)
    assert isinstance(mechanism.noisy, NoisyProjections)
    assert isinstance(mechanism.clipping, Ball)
    noise, epsilon = mechanism.noisy.noise, law.guarantee.epsilon
    return [
        Exact(
            "documents: the noise's law",
            round_up(epsilon),
            f"Probabilities of outcomes were compared, as the sampler weighs them, at a distance "
            f"of {_MOST} steps in {law.directions} directions.",
            lambda: shift_loss(noise),
        ),
        *noisy_means.audits(
            releases,
            EuclideanLaw(float(epsilon) / _MOST),
            pairs(mechanism.clipping, float(epsilon)),
        ),
    ]


def pairs(ball: Ball, epsilon: float) -> list[Pair]:
    """Return sentences that lie apart along the last direction and along a drawn one.

    Some lie beyond the ball, and are drawn in to its end.
    """
    size = len(ball.directions)
    last, drawn = np.eye(size)[-1], np.random.default_rng(0).normal(size=size)
    drawn /= np.linalg.norm(drawn)
    near = telling(epsilon, _MOST)
    found = []
    for name, direction, ends in (
        ("a step apart, along the last direction", last, (_WITHIN, _WITHIN + 1)),
        ("near, along the last direction", last, (-_FAR, near - STEPS)),
        ("near, along a drawn direction", drawn, (-_FAR, near - STEPS)),
        ("far apart, along a drawn direction", drawn, (-_FAR, _FAR)),
    ):
        found.append(Pair(name, _embeddings(ball, np.outer(ends, direction))))
    return found


def _embeddings(ball: Ball, places: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """Return embeddings that lie at these places, (n, d), in steps along the ball's directions."""
    back = np.linalg.pinv(ball.directions).T * (DIRECTION_UNIT * ball.radius / STEPS)
    return (ball.centre + places @ back).astype(np.float32)


def _laplace(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    tail = np.exp(-np.abs(values)) / 2
    return np.where(values > 0, 1 - tail, tail)


def _share(parts: npt.NDArray[np.float64], dimensions: int) -> npt.NDArray[np.float64]:
    """Return the distribution function of a coordinate of a unit vector in d >= 2 dimensions."""
    half = (dimensions - 1) / 2
    found: npt.NDArray[np.float64] = special.betainc(half, half, np.clip((parts + 1) / 2, 0, 1))
    return found


def shift_loss(noise: EuclideanNoise) -> float:
    """Compute the largest log-ratio of an outcome's probability under two sums 2 * STEPS apart.

    The sums differ along the first and the last coordinate, along a diagonal, and in drawn
    directions; outcomes lie at both sums, between and beyond them, and anywhere around.
    Probabilities are those of a candidate times its chance to be accepted, of the tables and the
    bounds that the sampler itself has.
    """
    generator = np.random.default_rng(0)
    d = noise.dimensions
    along = np.vstack([np.eye(d)[[0, -1]], np.ones((1, d)), generator.normal(size=(8, d))])
    along *= 2 * STEPS / np.linalg.norm(along, axis=1, keepdims=True)
    shifts = np.trunc(along).astype(np.int64)
    outcomes = [
        *(np.trunc(shift * share).astype(np.int64) for shift in shifts for share in (-1, 0, 1, 2)),
        *generator.integers(-STEPS, STEPS + 1, size=(_OUTCOMES, d)),
    ]
    reach = int(max(np.abs(outcomes).max() + np.abs(shifts).max(), 1))
    masses = log_masses(noise.law, 2 * reach + 1)
    worst = 0.0
    for shift, outcome in itertools.product(shifts, outcomes):
        one, two = (_log_weight(noise, masses, values) for values in (outcome, outcome - shift))
        worst = max(worst, one[1] - two[0], two[1] - one[0])
    return worst


def _log_weight(
    noise: EuclideanNoise, masses: dict[int, tuple[float, float]], values: npt.NDArray[np.int64]
) -> tuple[float, float]:
    """Return bounds on the logarithm of an outcome's probability, up to the law's constant."""
    squares, total = int((values**2).sum()), int(np.abs(values).sum())
    least, most = noise.loss(squares, total, _BITS)
    low, high = (sum(masses[int(value)][side] for value in values) for side in (0, 1))
    return low - float(most), high - float(least)
