"""A low-rank model of bags of words that are observed through geometric noise only.

Document d has a weight theta_dt for each of T factors, factor t a distribution phi_t over K bins,
and the count of bin k is Poisson with mean sum_t theta_dt phi_tk: the model of latent Dirichlet
allocation with a random length (Canny 2004, GaP; Cemgil 2009). Weights are Gamma, which makes
counts over-dispersed; phi_t is Dirichlet around the private histogram. The noisy counts are
observed, clipped nowhere. Mean-field variational laws are fitted by coordinate ascent (Cemgil 2009,
section 3; Hoffman, Blei, Wang and Paisley 2013); their latent counts have the exact posterior of
`noisy_counts`. This is post-processing: it costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy

from ..noise.noisy_counts import relative

Floats = npt.NDArray[np.float32]
_TINY = np.float32(1e-30)  # the least mean, for a document whose weights vanish in float32
_LEAST = 1e-3
"""The floor of a denoised count, relative to the corpus's own mean."""
_FEWEST_BINS = 40
"""The fewest bins to search: fewer showed no further directions, on complaints."""


@dataclass(frozen=True)
class Prior:
    """The prior knowledge of a fit, before the documents' noisy counts.

    Attributes:
        histogram: float64 (K,), positive, of sum 1: the corpus's shares of the bins, as released.
        length: tokens of a document, on average.
        factors: T.
        shape: the shape of each weight's Gamma law; the smaller, the fewer factors a document has.
        concentration: tokens of the histogram that each factor counts as its prior.
    """

    histogram: npt.NDArray[np.float64]
    length: float
    factors: int
    shape: float = 0.03
    concentration: float = 300.0

    @classmethod
    def of(cls, counts: npt.NDArray[np.float64], documents: int, factors: int) -> Prior:
        """Build the prior from a noisy histogram of bins, float64 (K,).

        In the distribution, counts below half a token are raised to it. The length is that of the
        unclipped counts: once clipped, positive noise would not be offset by negative noise.
        """
        positive = np.maximum(counts, 0.5)
        length = max(float(counts.sum()), 1.0) / documents
        return cls(positive / positive.sum(), length, factors)

    @property
    def rate(self) -> float:
        """Return the rate of the Gamma law, by which the mean document has `length` tokens."""
        return self.shape * self.factors / self.length


@dataclass(frozen=True)
class Factors:
    """Dirichlet laws of the factors: `parameters` is float64 (T, K)."""

    parameters: npt.NDArray[np.float64]

    @property
    def mean(self) -> Floats:
        """Return E[phi]."""
        totals = self.parameters.sum(axis=1, keepdims=True)
        found: Floats = (self.parameters / totals).astype(np.float32)
        return found

    @property
    def geometric_mean(self) -> Floats:
        """Return exp(E[log phi])."""
        totals = self.parameters.sum(axis=1, keepdims=True)
        found: Floats = np.exp(
            scipy.special.digamma(self.parameters) - scipy.special.digamma(totals)
        ).astype(np.float32)
        return found


@dataclass(frozen=True)
class Directions:
    """The signal in noisy counts: a few scores of a document, and each bin's dependence on them.

    Attributes:
        scales: float32 (K,): each bin's deviation by added noise and by the Poisson count itself.
        basis: float32 (K, r), orthonormal: scores are counts over scales, times this. The first
            column is the mean's.
        loadings: float32 (r, K): the expected counts over scales, for each unit of a score.
    """

    scales: Floats
    basis: Floats
    loadings: Floats

    def denoised(self, noisy: npt.NDArray[np.int32]) -> Floats:
        """Return the low-rank estimate of counts (n, K); it may be negative."""
        scores = (noisy / self.scales).astype(np.float32) @ self.basis
        counts: Floats = ((scores @ self.loadings) * self.scales).astype(np.float32)
        return counts

    @property
    def supported(self) -> int:
        """Return how many factors the directions can tell apart; the mean's alone supports one.

        Some topics lie below the noise, and only the fit finds them: three factors to a direction
        did best on complaints.
        """
        return most_factors(len(self.loadings))


def most_factors(directions: int) -> int:
    """Return the largest number of factors that `directions` directions can distinguish."""
    return 1 + 3 * (directions - 1)


def directions(
    gram: npt.NDArray[np.float64], documents: int, variance: float, means: npt.NDArray[np.float64]
) -> Directions:
    """Find the directions that stand out of the noise, and shrink along them optimally.

    Noise is the same in every bin, and signal lies where words are frequent. Directions are
    therefore sought among the most frequent bins alone: all of them, a half, a quarter and so on,
    whichever shows the most directions. The other bins' loadings are a regression; shrinking it did
    worse.

    Gavish and Donoho (2017), Frobenius loss: a singular value y of a matrix of signal and white
    noise, in units of noise, becomes sqrt((y^2 - b - 1)^2 - 4 b) / y, b = K / n. Noise alone passes
    its edge by seven of its deviations only with a probability below 1e-6 (Johnstone 2001), if all
    documents have one length; other documents have more signal than their length's share.

    Args:
        gram: float64 (K, K): the noisy counts' sum of outer products over the documents.
        documents: n.
        variance: the variance of the noise that was added to a count.
        means: float64 (K,): of the counts, which are Poisson.
    """
    scales = np.sqrt(variance + means)
    white = gram / np.outer(scales, scales) / documents
    order, size = np.argsort(-means, kind="stable"), len(white)
    seen = [_standing_out(white, order[:size], documents)]
    while size >= 2 * _FEWEST_BINS:
        size //= 2
        seen.append(_standing_out(white, order[:size], documents))
    bins, squares, vectors = max(seen, key=lambda found: len(found[1]))
    ratio = len(bins) / documents
    shrunk = np.sqrt(np.maximum((squares - ratio - 1) ** 2 - 4 * ratio, 0))
    basis = np.zeros((len(white), len(squares)), np.float32)
    basis[bins] = vectors
    loadings = vectors.T @ white[bins] / squares[:, None]
    loadings[:, bins] = vectors.T * (shrunk / squares)[:, None]
    return Directions(scales.astype(np.float32), basis, loadings.astype(np.float32))


def _standing_out(
    white: npt.NDArray[np.float64], bins: npt.NDArray[np.int64], documents: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return some bins, the eigenvalues (r,) among them that pass the noise's edge, and vectors."""
    values, vectors = np.linalg.eigh(white[np.ix_(bins, bins)])
    values, vectors = values[::-1], vectors[:, ::-1]
    root = 1 + np.sqrt(len(bins) / documents)
    spread = (1 / np.sqrt(documents) + 1 / np.sqrt(len(bins))) ** (1 / 3)
    known = values > root**2 + 7 * root * spread / np.sqrt(documents)
    known[0] = True
    return bins, np.maximum(values[known], _LEAST), vectors[:, known]


def first_factors(
    denoised: Floats, prior: Prior, generator: np.random.Generator, steps: int = 40
) -> Factors:
    """Fit factors to denoised counts (n, K), as a start that noise cannot lead astray.

    The fit is expectation maximisation (Lee and Seung 2001), from random factors near the
    histogram.
    """
    counts = _positive(denoised, prior)
    own = generator.gamma(2, 0.5, (prior.factors, len(prior.histogram)))
    factors = Factors(own * prior.histogram)
    shapes = _flat(counts, prior) * generator.gamma(20, 0.05, (len(counts), prior.factors))
    for _ in range(steps):
        topics = factors.mean
        shapes, tokens = _climb(counts, shapes, topics, prior)
        factors = updated(prior, tokens)
    return factors


def first_shapes(
    denoised: Floats, factors: Factors, prior: Prior, steps: int = 10
) -> npt.NDArray[np.float64]:
    """Fit the Gamma shapes (n, T) of the weights of documents with denoised counts (n, K)."""
    counts, topics = _positive(denoised, prior), factors.mean
    shapes = _flat(counts, prior)
    for _ in range(steps):
        shapes, _ = _climb(counts, shapes, topics, prior)
    return shapes


def _positive(denoised: Floats, prior: Prior) -> Floats:
    return np.maximum(denoised, _LEAST * prior.length * prior.histogram).astype(np.float32)


def _flat(counts: Floats, prior: Prior) -> npt.NDArray[np.float64]:
    """Return the shapes that give every factor the same share of a document."""
    shares = counts.sum(axis=1, keepdims=True, dtype=np.float64) / prior.factors
    return np.repeat(shares, prior.factors, axis=1)


def _climb(
    counts: Floats, shapes: npt.NDArray[np.float64], topics: Floats, prior: Prior
) -> tuple[npt.NDArray[np.float64], Floats]:
    """Take one step of the fit for counts that are known."""
    weights = (shapes / (1 + prior.rate)).astype(np.float32)
    ratios = counts / (weights @ topics)
    return prior.shape + weights * (ratios @ topics.T), topics * (weights.T @ ratios)


def step(
    noisy: npt.NDArray[np.int32],
    shapes: npt.NDArray[np.floating],
    topics: Floats,
    prior: Prior,
    decay: float,
) -> tuple[npt.NDArray[np.float64], Floats]:
    """Take one step of coordinate ascent for some documents.

    Args:
        noisy: int32 (n, K).
        shapes: the shapes of the weights' Gamma laws, (n, T).
        topics: `Factors.geometric_mean`.
        prior: the prior.
        decay: exp(-rate) of the noise.

    Returns:
        The shapes, and the tokens that the documents give to each factor and bin, float32 (T, K).
    """
    weights = (np.exp(scipy.special.digamma(shapes)) / (1 + prior.rate)).astype(np.float32)
    means = np.maximum(weights @ topics, _TINY)
    ratios = relative(noisy, means, decay)
    return prior.shape + weights * (ratios @ topics.T), topics * (weights.T @ ratios)


def updated(prior: Prior, tokens: npt.NDArray[np.floating]) -> Factors:
    """Return the factors' laws, given all the tokens of each factor and bin, (T, K)."""
    return Factors(prior.concentration * prior.histogram + tokens.astype(np.float64))


def means(shapes: npt.NDArray[np.floating], fits: Sequence[Factors], prior: Prior) -> Floats:
    """Estimate each document's mean counts, averaged over the fits: float32 (n, K).

    Args:
        shapes: the shapes of the documents' weights, (starts, n, T).
        fits: the factors of each start.
        prior: the prior.
    """
    total = np.float32(0)
    for own, factors in zip(shapes, fits, strict=True):
        total = total + (own / (1 + prior.rate)).astype(np.float32) @ factors.mean
    found: Floats = np.maximum(total / np.float32(len(fits)), _TINY)
    return found
