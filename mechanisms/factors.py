"""A low-rank model of bags of words that are seen through geometric noise only.

Document d has a weight theta_dt for each of T factors, factor t a distribution phi_t over K bins,
and the count of bin k is Poisson with mean sum_t theta_dt phi_tk: the model of latent Dirichlet
allocation with a random length (Canny 2004, GaP; Cemgil 2009). Weights are Gamma, which makes
counts over-dispersed; phi_t is Dirichlet around the private histogram. The noisy counts are seen,
clipped nowhere. What is fitted are mean-field variational laws, by coordinate ascent (Cemgil 2009,
section 3; Hoffman, Blei, Wang and Paisley 2013), whose latent counts have the exact posterior of
`noisy_counts`. Post-processing: it costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import digamma

from quietcorpus.mechanisms.noisy_counts import relative

Floats = npt.NDArray[np.float32]
_TINY = np.float32(1e-30)  # of a document that has no factor, as far as float32 can tell
_LEAST = 1e-3
"""What is left of a negative mean, relative to the corpus's own."""
_FEWEST_BINS = 40
"""Among fewer bins no more directions were seen, on complaints."""


@dataclass(frozen=True)
class Prior:
    """What is known before the noisy counts.

    Attributes:
        histogram: float64 (K,), positive, of sum 1: the corpus's bins, as far as is released.
        length: tokens of a document, on average.
        factors: T.
        shape: of each weight's Gamma law; the smaller, the fewer factors a document has.
        concentration: tokens that each factor is worth as the histogram, before any is seen.
    """

    histogram: npt.NDArray[np.float64]
    length: float
    factors: int
    shape: float = 0.03
    concentration: float = 300.0

    @classmethod
    def of(cls, counts: npt.NDArray[np.float64], documents: int, factors: int) -> Prior:
        """What a noisy histogram of bins tells, float64 (K,).

        Half a token stands for none in its law. The length is of what was not clipped: noise
        above zero would make up for none below.
        """
        positive = np.maximum(counts, 0.5)
        length = max(float(counts.sum()), 1.0) / documents
        return cls(positive / positive.sum(), length, factors)

    @property
    def rate(self) -> float:
        """Of the Gamma law: the mean document has `length` tokens."""
        return self.shape * self.factors / self.length


@dataclass(frozen=True)
class Factors:
    """Dirichlet laws of the factors: `parameters` is float64 (T, K)."""

    parameters: npt.NDArray[np.float64]

    @property
    def mean(self) -> Floats:
        """E[phi]."""
        totals = self.parameters.sum(axis=1, keepdims=True)
        found: Floats = (self.parameters / totals).astype(np.float32)
        return found

    @property
    def geometric_mean(self) -> Floats:
        """exp(E[log phi])."""
        totals = self.parameters.sum(axis=1, keepdims=True)
        found: Floats = np.exp(digamma(self.parameters) - digamma(totals)).astype(np.float32)
        return found


@dataclass(frozen=True)
class Directions:
    """What of noisy counts is signal: a few scores of a document, and what all bins owe to them.

    Attributes:
        scales: float32 (K,): the deviation of each bin that is noise, its own or the count's.
        basis: float32 (K, r), orthonormal: scores are counts over scales, times this. The first
            is the mean's.
        loadings: float32 (r, K): the expected counts over scales, for each unit of a score.
    """

    scales: Floats
    basis: Floats
    loadings: Floats

    def denoised(self, noisy: npt.NDArray[np.int32]) -> Floats:
        """The low-rank estimate of counts (n, K); it may be negative."""
        scores = (noisy / self.scales).astype(np.float32) @ self.basis
        counts: Floats = ((scores @ self.loadings) * self.scales).astype(np.float32)
        return counts

    @property
    def supported(self) -> int:
        """How many factors they can tell apart: with none but the mean's, documents are alike.

        Some topics lie below the noise and are found by the fit alone: three to a direction did
        best on complaints.
        """
        return 1 + 3 * (len(self.loadings) - 1)


def directions(
    gram: npt.NDArray[np.float64], documents: int, variance: float, means: npt.NDArray[np.float64]
) -> Directions:
    """The directions that stand out of the noise, and the optimal shrinkage along them.

    Noise is the same in every bin, and signal is where words are frequent. So directions are
    sought among the most frequent bins alone: all, or a half, a quarter, and so on of them,
    whichever shows most. What other bins owe to them is a regression; shrinking that did worse.

    Gavish and Donoho (2017), Frobenius loss: a singular value y of a matrix of signal and white
    noise, in units of noise, becomes sqrt((y^2 - b - 1)^2 - 4 b) / y, b = K / n. Noise alone passes
    its edge by seven of its deviations only with a probability below 1e-6 (Johnstone 2001), where
    documents are of one length: others have more signal than their length's share.

    Args:
        gram: float64 (K, K): the noisy counts' sum of outer products over the documents.
        documents: n.
        variance: of the noise that was added to a count.
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
    """The eigenvalues (r,) that pass the edge of noise among some bins, and their vectors."""
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
    """Factors of denoised counts (n, K): a start that noise cannot lead astray.

    Expectation maximisation (Lee and Seung 2001) from random factors near the histogram.
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
    """Gamma shapes of the weights of documents with these denoised counts (n, K), (n, T)."""
    counts, topics = _positive(denoised, prior), factors.mean
    shapes = _flat(counts, prior)
    for _ in range(steps):
        shapes, _ = _climb(counts, shapes, topics, prior)
    return shapes


def _positive(denoised: Floats, prior: Prior) -> Floats:
    return np.maximum(denoised, _LEAST * prior.length * prior.histogram).astype(np.float32)


def _flat(counts: Floats, prior: Prior) -> npt.NDArray[np.float64]:
    """Every factor has as much of a document."""
    shares = counts.sum(axis=1, keepdims=True, dtype=np.float64) / prior.factors
    return np.repeat(shares, prior.factors, axis=1)


def _climb(
    counts: Floats, shapes: npt.NDArray[np.float64], topics: Floats, prior: Prior
) -> tuple[npt.NDArray[np.float64], Floats]:
    """One step for counts that are known."""
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
    """One step of coordinate ascent for some documents.

    Args:
        noisy: int32 (n, K).
        shapes: of the weights' Gamma laws, (n, T).
        topics: `Factors.geometric_mean`.
        prior: the prior.
        decay: exp(-rate) of the noise.

    Returns:
        The shapes, and the tokens that the documents give to each factor and bin, float32 (T, K).
    """
    weights = (np.exp(digamma(shapes)) / (1 + prior.rate)).astype(np.float32)
    means = np.maximum(weights @ topics, _TINY)
    ratios = relative(noisy, means, decay)
    return prior.shape + weights * (ratios @ topics.T), topics * (weights.T @ ratios)


def updated(prior: Prior, tokens: npt.NDArray[np.floating]) -> Factors:
    """The factors' laws, given all the tokens of each factor and bin, (T, K)."""
    return Factors(prior.concentration * prior.histogram + tokens.astype(np.float64))


def means(shapes: npt.NDArray[np.floating], fits: Sequence[Factors], prior: Prior) -> Floats:
    """What each document's counts are on average, by what is known of it: float32 (n, K).

    Args:
        shapes: of the documents' weights, (starts, n, T): the average is over the fits.
        fits: as many.
        prior: the prior.
    """
    total = np.float32(0)
    for own, factors in zip(shapes, fits, strict=True):
        total = total + (own / (1 + prior.rate)).astype(np.float32) @ factors.mean
    found: Floats = np.maximum(total / np.float32(len(fits)), _TINY)
    return found
