"""The inference of all documents that a logistic regression has learnt from, by all its answers.

At the optimum of a regularised logistic regression the coefficients of class c are a sum over the
documents learnt from: strength * ([label is c] - Pr[c]) times the released features. So the
model's log-odds on originals are linear in who was learnt from, and the attacker uses all of them
together: one document's own answer tells little about it where many resemble it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..classification import Features, fitted, strength_of
from ..latent import weighted
from .halves import half

_LEAST = 1e-15
_FREE = 1e3  # the variance of an intercept, in those of answers
_SLIGHT, _OF_ANSWERS = 1e-3, 1e-6  # added to the covariance of answers, in parts of its trace
_PRIOR = 4.0  # the precision of a document that was learnt from or not, by halves

Array = npt.NDArray[np.float64]


class JointMembership:
    """An attacker who holds originals, and releases of them that it drew itself.

    From models of its own, each of a random half of the documents' fresh releases, it learns by how
    much a class falls short of a document's label. Released features are taken for normal, with
    means and variances of fresh releases, and membership for normal of mean 1/2 and variance 1/4:
    its posterior mean is a ridge regression.
    """

    def __init__(
        self,
        raw: Features,
        draws: Sequence[Features],
        labels: npt.NDArray[np.int64],
        generator: np.random.Generator,
    ) -> None:
        """Learn from fresh releases.

        Args:
            raw: features (n, d) of the originals, as models see them.
            draws: two or more fresh releases of the same documents, likewise.
            labels: the classes, 0 .. classes - 1, int64 (n,).
            generator: the generator of the halves.
        """
        self._shares = _shortfalls(draws, labels, generator) * strength_of(raw)
        self._shares -= self._shares.mean(axis=1, keepdims=True)
        prepared = _Prepared(draws)
        originals = prepared(raw)
        mean, squares = np.zeros(originals.shape), np.zeros(originals.shape[1])
        for draw in draws:
            features = prepared(draw)
            mean += features / len(draws)
            squares += (features**2).sum(axis=0)
        variance = np.maximum(squares - len(draws) * (mean**2).sum(axis=0), 0)
        variance /= (len(draws) - 1) * len(mean)
        self._alike = mean @ originals.T
        self._noise = (originals * variance) @ originals.T

    def __call__(self, posteriors: Array) -> Array:
        """Infer who was learnt from, by a model's posteriors of all originals, (n, classes).

        Returns float64 (n,): posterior means less 1/2.
        """
        logs = np.log(np.maximum(posteriors, _LEAST))
        logs -= logs.mean(axis=1, keepdims=True)
        count, shares, alike = len(logs), self._shares, self._alike
        # The covariance of answers, up to each class's mean square of half of the shares.
        noise = self._noise.copy()
        slight = _SLIGHT * np.trace(noise) + _OF_ANSWERS * (alike**2).sum()
        noise[np.diag_indices(count)] += slight / count + _LEAST
        noise += _FREE * np.trace(noise) / count
        told = np.linalg.solve(noise, np.column_stack([alike.T, logs]))
        products, towards = alike @ told[:, :count], alike @ told[:, count:]
        precision = _PRIOR * np.eye(count)
        found = np.zeros(count)
        for own, seen in zip(shares.T, towards.T, strict=True):
            square = max(float((own**2).sum()) / 2, _LEAST)
            precision += own[:, None] * products * own / square
            found += own * (seen - products @ own / 2) / square
        return np.asarray(np.linalg.solve(precision, found), dtype=np.float64)


class _Prepared:
    """Features as a model's coefficients see them: weighted counts, or standardised values."""

    def __init__(self, draws: Sequence[Features]) -> None:
        first = draws[0]
        self._scaled = isinstance(first, np.ndarray)
        if isinstance(first, np.ndarray):
            self._mean, spread = first.mean(axis=0), first.std(axis=0)
            self._spread = np.where(spread > 0, spread, 1)

    def __call__(self, features: Features) -> Array:
        if self._scaled:
            return np.asarray((features - self._mean) / self._spread, dtype=np.float64)
        return np.asarray(weighted(features).toarray())


def _shortfalls(
    draws: Sequence[Features],
    labels: npt.NDArray[np.int64],
    generator: np.random.Generator,
) -> Array:
    """Estimate [label is c] - Pr[c] of each document if it is learnt from, (n, classes).

    Documents that few models have learnt from are drawn in towards the mean of their class.
    """
    classes = np.eye(int(labels.max()) + 1)[labels]
    found, counts = np.zeros(classes.shape), np.zeros(len(labels))
    for draw in draws:
        members = half(labels, generator)
        model = fitted(draw[members], labels[members])
        found[members] += classes[members] - model.predict_proba(draw[members])
        counts[members] += 1
    of_class = classes.T @ found / np.maximum(classes.T @ counts, 1)[:, None]
    shares: Array = (found + 2 * of_class[labels]) / (counts + 2)[:, None]
    return shares
