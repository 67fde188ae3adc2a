"""Audits of noisy means of projected sentences."""

from __future__ import annotations

import itertools
import math
from functools import partial

import numpy as np
import numpy.typing as npt

from quietcorpus.evaluation.audits.exact import log_masses
from quietcorpus.evaluation.audits.findings import Exact, Sampled
from quietcorpus.evaluation.audits.lower_bound import epsilon_at_least
from quietcorpus.indexes.candidates import Candidates
from quietcorpus.mechanisms.euclidean_noise import EuclideanNoise
from quietcorpus.mechanisms.guarantees import round_up
from quietcorpus.mechanisms.projected_mean import STEPS, Ball, NoisyProjections, ProjectedMean
from quietcorpus.pipelines.audit.inputs import means_released, telling
from quietcorpus.transforms.privatizers.sentences import ball

_PAIRS = 256
_FAR = 100.0  # by what sentences are scaled, so that they lie beyond the ball
_OUTCOMES = 64
_BITS = 128
_DIMENSIONS = 2  # of an audit by draws: in many dimensions, no event tells much


def audits(law: ProjectedMean, candidates: Candidates) -> list[Exact | Sampled]:
    """Return audits of a sentence's effect, of the noise's law, and of means in two directions."""
    whole = ball(candidates, law.directions)
    few = min(_DIMENSIONS, law.directions)
    narrow = NoisyProjections(ProjectedMean(law.epsilon, few), ball(candidates, few))
    epsilon, most = law.guarantee.epsilon, 2 * STEPS
    found: list[Exact | Sampled] = [
        Exact(
            "documents: what a sentence moves sums by",
            float(most),
            f"The figures are steps of Euclidean length: the largest change over {_PAIRS} pairs of "
            "public sentences, and of others as far beyond the ball.",
            lambda: largest_change(whole, candidates.embeddings),
        ),
        Exact(
            "documents: the noise's law",
            round_up(epsilon),
            f"Probabilities of outcomes were compared, as the sampler weighs them, at a distance "
            f"of {most} steps in {law.directions} directions.",
            lambda: shift_loss(EuclideanNoise(law.rate, law.directions)),
        ),
    ]
    for steps in sorted({telling(float(epsilon), most), most}):
        below = np.zeros(few, dtype=np.int64)
        below[0] = -STEPS
        moved = below.copy()
        moved[0] += steps
        found.append(
            Sampled(
                f"documents: {steps} of {most} steps in {few} directions",
                round_up(epsilon * steps / most),
                "Means were released of a sentence at one end of the ball, and of one moved from "
                "there.",
                partial(epsilon_at_least, partial(means_released, narrow, below), below, moved),
            )
        )
    return found


def largest_change(ball: Ball, embeddings: npt.NDArray[np.float32]) -> float:
    """Compute the largest Euclidean change of a sum over pairs of sentences and their reflections.

    Each pair is tried as it is, and far beyond the ball.
    """
    generator = np.random.default_rng(0)
    own = embeddings[generator.integers(len(embeddings), size=_PAIRS)] - ball.centre
    other = np.where(np.arange(_PAIRS)[:, None] % 2, -own, own[generator.permutation(_PAIRS)])
    worst = 0.0
    for factor in (1.0, _FAR):
        one, two = (
            ball.sums((rows * factor + ball.centre).astype(np.float32), np.arange(_PAIRS + 1))
            for rows in (own, other)
        )
        worst = max(worst, math.sqrt(int(((one - two) ** 2).sum(axis=1).max())))
    return worst


def shift_loss(noise: EuclideanNoise) -> float:
    """Compute the largest log-ratio of an outcome's probability under two sums 2 * STEPS apart.

    The sums differ along a coordinate, along a diagonal, and in drawn directions; outcomes lie at
    both sums, between and beyond them, and anywhere around. Probabilities are those of a candidate
    times its chance to be accepted, of the tables and the bounds that the sampler itself has.
    """
    generator = np.random.default_rng(0)
    d = noise.dimensions
    along = np.vstack([np.eye(d)[:1], np.ones((1, d)), generator.normal(size=(8, d))])
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
