"""The cost of hiding whole documents: the baselines of LPLP's figure 1.

Schofield, Yauney and Mimno compare limited precision with full local privacy, where any two
documents are neighbours. A document is cut to at most `length` tokens, chosen at random; then
any two are within 2 * length of each other in L1, and noise of scale 2 * length / epsilon on each
of the V counts makes the release epsilon-differentially private. Negative counts are clipped.

This is an evaluation, never a release: the noise is NumPy's. The results are dense, of about
n * V / 2 entries of 8 bytes; take a sample of the documents where that is too much.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

_ENTRIES_A_BLOCK = 1 << 22
_LARGEST = np.iinfo(np.int32).max

Noise = Callable[[tuple[int, ...]], npt.NDArray[np.number]]


def laplace(
    counts: sp.csr_array, epsilon: float, length: int, generator: np.random.Generator
) -> sp.csr_array:
    """Add Laplace noise of scale 2 * length / epsilon to counts, rounded to the nearest integer.

    Args:
        counts: non-negative integers, shape (n, V).
        epsilon: the epsilon of every document.
        length: the largest number of tokens kept of a document.
        generator: the generator of the cuts and the noise.

    Returns:
        int32 (n, V), non-negative.

    Raises:
        ValueError: an epsilon or a length out of range.
    """
    scale = 1 / _rate(epsilon, length)
    return _noisy(counts, length, lambda shape: generator.laplace(0, scale, shape), generator)


def geometric(
    counts: sp.csr_array, epsilon: float, length: int, generator: np.random.Generator
) -> sp.csr_array:
    """Add two-sided geometric noise likewise, with alpha = exp(-epsilon / (2 * length))."""
    success = -np.expm1(-_rate(epsilon, length))

    def noise(shape: tuple[int, ...]) -> npt.NDArray[np.int64]:
        return generator.geometric(success, shape) - generator.geometric(success, shape)

    return _noisy(counts, length, noise, generator)


def _rate(epsilon: float, length: int) -> float:
    if not 0 < epsilon < np.inf:
        raise ValueError(f"epsilon is {epsilon}; it must be above 0 and finite")
    if length < 1:
        raise ValueError(f"the length is {length}; keep at least one token of a document")
    return epsilon / (2 * length)


def _noisy(
    counts: sp.csr_array, length: int, noise: Noise, generator: np.random.Generator
) -> sp.csr_array:
    documents, terms = counts.shape
    cut = _cut(counts, length, generator)
    rows = max(1, _ENTRIES_A_BLOCK // max(1, terms))
    blocks = []
    for start in range(0, documents, rows):
        block = cut[start : start + rows].toarray()
        values = np.rint(block + noise(block.shape))
        blocks.append(sp.csr_array(np.clip(values, 0, _LARGEST).astype(np.int32)))
    return sp.csr_array(sp.vstack(blocks, format="csr"))


def _cut(counts: sp.csr_array, length: int, generator: np.random.Generator) -> sp.csr_array:
    """Cut documents of more than `length` tokens to `length` of them, drawn without replacement."""
    cut = sp.csr_array(counts, dtype=np.int64, copy=True)
    for document in np.flatnonzero(cut.sum(axis=1) > length):
        own = slice(cut.indptr[document], cut.indptr[document + 1])
        cut.data[own] = generator.multivariate_hypergeometric(
            cut.data[own], length, method="marginals"
        )
    return cut
