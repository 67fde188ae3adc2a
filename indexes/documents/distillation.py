"""Distillation of a sentence encoder into a table: one vector a token, whose mean is an embedding.

The table starts with the encoder's own output for each token alone. What all tokens have in common
is taken out, each token is weighted by a / (a + p), p its frequency (Arora, Liang and Ma: a simple
but tough-to-beat baseline for sentence embeddings, ICLR 2017), and the mean of the encoder's
embeddings of public sentences is added. Ridge regression towards these embeddings then changes the
table, the more a token occurs: with A the matrix of each sentence's shares of tokens and E the
embeddings,

    minimise |A T - E|^2 + strength |T - T0|^2.

A token of no public sentence keeps its start. The strength is chosen on held-out sentences.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse

Floats = npt.NDArray[np.float64]
STRENGTHS = 0.1, 0.03, 0.01
"""The strengths of the regression that are tried."""
_HELD = 10  # one public sentence in ten is held out
_FREQUENT = 1e-4  # the frequency of which tokens count half
_COLUMNS = 64  # a few tables of so many are held at once
_ITERATIONS = 50  # of conjugate gradients; cosines then change by less than 1e-4


@dataclass(frozen=True, eq=False)
class Distilled:
    """A table that stands for an encoder.

    Attributes:
        vectors: each token's, float64 (V, d).
        strength: the regression's.
        closeness: the mean cosine with the encoder's embeddings of held-out public sentences.
        start: the same before the regression.
    """

    vectors: Floats
    strength: float
    closeness: float
    start: float


def distilled(
    alone: Floats, tokens: Sequence[Sequence[int]], embeddings: Floats, seed: int
) -> Distilled:
    """Make the table of an encoder.

    Args:
        alone: the encoder's embedding of each token, (V, d).
        tokens: those of each public sentence, one at least.
        embeddings: the encoder's of each public sentence, (n, d).
        seed: of the choice of held-out sentences.

    Raises:
        ValueError: the sentences are fewer than twenty.
    """
    if len(tokens) < 2 * _HELD:
        raise ValueError(f"{len(tokens)} sentences")
    shares = _shares(tokens, len(alone))
    held = np.random.default_rng(seed).permutation(len(tokens)) % _HELD == 0
    known, wanted = shares[~held], _unit(embeddings)[~held]
    frequencies = np.bincount(np.concatenate(tokens), minlength=len(alone)).astype(np.float64)
    frequencies /= frequencies.sum()
    own, common = _unit(alone), wanted.mean(axis=0)
    start = (own - frequencies @ own) * (_FREQUENT / (_FREQUENT + frequencies))[:, None]
    first = known @ start
    start *= (first * (wanted - common)).sum() / (first**2).sum()
    start += common  # of every token, and so of every mean
    unseen, expected = shares[held], _unit(embeddings)[held]

    def closeness(vectors: Floats) -> float:
        return float((_unit(unseen @ vectors) * expected).sum(axis=1).mean())

    tried = (  # one beside the best so far
        Distilled(vectors, strength, closeness(vectors), before)
        for before in [closeness(start)]
        for strength in STRENGTHS
        for vectors in [start + _change(known, wanted - known @ start, strength)]
    )
    return max(tried, key=lambda one: one.closeness)


def _shares(tokens: Sequence[Sequence[int]], size: int) -> sparse.csr_matrix:
    """Return the share of each token in each sentence, (n, V)."""
    counts = np.array([len(one) for one in tokens])
    offsets = np.concatenate([[0], np.cumsum(counts)])
    shares = sparse.csr_matrix(
        (np.repeat(1 / counts, counts), np.concatenate(tokens), offsets), (len(tokens), size)
    )
    shares.sum_duplicates()
    return shares


def _unit(vectors: Floats) -> Floats:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(norms == 0, 1, norms)


def _change(shares: sparse.csr_matrix, missing: Floats, strength: float) -> Floats:
    """Solve (A'A + strength) change = A' missing, for some columns at a time."""
    change = np.empty((shares.shape[1], missing.shape[1]))
    for first in range(0, missing.shape[1], _COLUMNS):
        some = slice(first, first + _COLUMNS)
        change[:, some] = _solved(shares, np.ascontiguousarray(missing[:, some]), strength)
    return change


def _solved(shares: sparse.csr_matrix, missing: Floats, strength: float) -> Floats:
    """Solve the same by conjugate gradients for each column."""
    change = np.zeros((shares.shape[1], missing.shape[1]))
    rest = shares.T @ missing
    towards, size = rest.copy(), (rest**2).sum(axis=0)
    for _ in range(_ITERATIONS):
        turned = shares.T @ (shares @ towards) + strength * towards
        curvature = (towards * turned).sum(axis=0)
        step = np.divide(size, curvature, out=np.zeros_like(size), where=curvature > 0)
        change += step * towards
        rest -= step * turned
        before, size = size, (rest**2).sum(axis=0)
        towards *= np.divide(size, before, out=np.zeros_like(size), where=before > 0)
        towards += rest
    return change
