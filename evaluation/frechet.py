"""The Fréchet distance of two sets of embeddings, each as the normal distribution of its moments.

Dowson and Landau (Journal of Multivariate Analysis 12, 1982) give its closed form. Heusel et al.
(NeurIPS 2017) introduced it for embeddings: FID, whose covariances are those of samples. Those of
weighted points are taken here as they are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Moments:
    """The mean, (d,), and the covariance, (d, d), of weighted points."""

    mean: Floats
    covariance: Floats

    @classmethod
    def of(cls, points: npt.NDArray[np.floating], weights: npt.NDArray[np.floating]) -> Moments:
        """Compute the moments of points (n, d) with non-negative weights (n,), not all zero.

        The covariance is sum_i w_i (x_i - mean) (x_i - mean)' / sum_i w_i.
        """
        some = weights > 0
        shares = weights[some] / weights[some].sum()
        exact = points[some].astype(np.float64)
        mean = shares @ exact
        centred = (exact - mean) * np.sqrt(shares)[:, None]
        return cls(mean, centred.T @ centred)

    @classmethod
    def drawn(
        cls,
        points: npt.NDArray[np.floating],
        weights: npt.NDArray[np.floating],
        count: int,
        generator: np.random.Generator,
    ) -> Moments:
        """Compute the moments of `count` points that are drawn by their weights.

        Few points look far from anything: the distance's bias falls with their number. So what is
        compared with `count` points is drawn as often.
        """
        chosen = generator.choice(len(weights), count, p=weights / weights.sum())
        return cls.of(points[chosen], np.ones(count))


def frechet_distance(one: Moments, other: Moments) -> float:
    """Compute |m - n|^2 + tr(C + D - 2 (C D)^(1/2)) for means m, n and covariances C, D.

    The eigenvalues of C D are those of the symmetric C^(1/2) D C^(1/2), which are real.
    """
    root = _root(one.covariance)
    shared = np.linalg.eigvalsh(root @ other.covariance @ root)
    traces = np.trace(one.covariance) + np.trace(other.covariance)
    gap = float(((one.mean - other.mean) ** 2).sum())
    # Rounding may take an eigenvalue of zero, or a distance of zero, below it.
    return max(0.0, gap + float(traces - 2 * np.sqrt(np.maximum(shared, 0)).sum()))


def _root(covariance: Floats) -> Floats:
    values, vectors = np.linalg.eigh(covariance)
    found: Floats = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
    return found
