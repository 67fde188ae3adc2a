"""Documents drawn from a known topic model: latent Dirichlet allocation (Blei, Ng, Jordan 2003)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

_SHARE, _WEIGHT = 0.1, 0.01
"""Of the Dirichlet laws: of a document's topics, and of a topic's terms on average."""


class Drawn(NamedTuple):
    """Documents, and what they were drawn from.

    Attributes:
        counts: int32 (n, V).
        topics: float64 (T, V), of sum 1.
    """

    counts: sp.csr_array
    topics: npt.NDArray[np.float64]


def draw(
    weights: npt.NDArray[np.float64],
    documents: int,
    length: float,
    topics: int,
    generator: np.random.Generator,
) -> Drawn:
    """Documents whose terms are as frequent, on average, as `weights` say.

    Topics are Dirichlet around the weights, of 0.01 a term on average; a document's shares are
    Dirichlet of 0.1 each; its length is Poisson around an exponential law, as spread as lengths of
    texts are.

    Args:
        weights: non-negative, float64 (V,).
        documents: n.
        length: terms of a document, on average.
        topics: T.
        generator: of all draws.
    """
    share = np.maximum(weights, 1e-12) / weights.sum()
    # By gammas, which do not end in 0 / 0 where all parameters of a Dirichlet law are tiny.
    own = generator.gamma(_WEIGHT * len(weights) * share, size=(topics, len(weights)))
    laws = own / own.sum(axis=1, keepdims=True)
    lengths = generator.poisson(generator.exponential(length, documents))
    of = np.repeat(np.arange(documents), lengths)
    shares = np.cumsum(generator.dirichlet(np.full(topics, _SHARE), documents), axis=1)
    topic = (generator.random(len(of))[:, None] > shares[of, :-1]).sum(axis=1)
    term = np.empty(len(of), np.int64)
    for number, law in enumerate(laws):
        mine = topic == number
        term[mine] = generator.choice(len(weights), mine.sum(), p=law)
    ones = np.ones(len(of), np.int32)
    counts = sp.csr_array((ones, (of, term)), shape=(documents, len(weights)))
    counts.sum_duplicates()
    return Drawn(counts, laws)
