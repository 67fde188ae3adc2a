"""Two releases on public documents, from coarse to fine: the first one narrows a pool.

As `quietcorpus index narrow-pool` makes it, the narrowed pool has the texts of the lists that stand
out, and an encoder of its own if the pool carries one; but it is compared with as a whole.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from quietcorpus.indexes import lsa
from quietcorpus.indexes.lsa import Lsa
from quietcorpus.indexes.pool import Pool
from quietcorpus.mechanisms.ballots import Sums
from quietcorpus.mechanisms.deep_candidate import on_grid
from quietcorpus.mechanisms.vote_estimates import can_smooth
from quietcorpus.mechanisms.vote_lists import stand_out
from quietcorpus.mechanisms.vote_rounds import rounds_at
from quietcorpus.transforms.artefacts.encoder import Encoder
from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.votes import AT_ONCE

from .public_votes import Ballots, VotingDocuments


def budgets(
    epsilon: Fraction, delta: Fraction | None, share: Fraction
) -> tuple[Fraction, Fraction]:
    """Split a budget between two releases, by their noise; a delta of None is of geometric noise.

    Raises InputError where that takes too much noise.
    """
    try:
        found = rounds_at(epsilon, delta, share)
    except ValueError as error:
        raise InputError(f"rounds: {error}") from None
    return found.first, found.second


class NarrowedBallots(NamedTuple):
    """The votes of all documents for the texts of a pool that a first release has narrowed.

    Attributes:
        ballots: the votes.
        texts: how many texts are left.
        can_smooth: whether they are enough for estimates by their embeddings.
    """

    ballots: Ballots
    texts: int
    can_smooth: bool


def narrowed(
    documents: VotingDocuments,
    pool: Pool,
    encoder: Encoder | Lsa,
    noisy: Sums,
    deviation: Fraction,
    nearest: int,
) -> NarrowedBallots | None:
    """Narrow a pool with lists by noisy votes for its texts, int64 (labels, texts).

    Documents then vote for the `nearest` texts of what is left, or for all of it. None if no list
    stands out of noise of this deviation, or what is left is too little for an encoder.
    """
    assert pool.lists is not None
    sizes = np.asarray(pool.lists.sizes)
    chosen = np.flatnonzero(np.repeat(stand_out(noisy, sizes, deviation), sizes))
    texts = pool.texts.take(pa.array(chosen))
    vectors = pool.vectors[chosen]
    if isinstance(encoder, Lsa):
        try:
            encoder = lsa.fit(texts, tokenizer=encoder.vocabulary.tokenizer)
        except lsa.TooFewTexts:
            return None
        parts = pairwise([*range(0, len(texts), AT_ONCE), len(texts)])
        vectors = np.concatenate(
            [on_grid(encoder.encode(texts[a:b].to_pylist())) for a, b in parts]
        )
    if not len(texts):
        return None
    own = Pool(pool.manifest, texts, vectors)
    ballots = Ballots(documents, own, encoder, min(nearest, len(texts)))
    return NarrowedBallots(ballots, len(texts), can_smooth(len(texts), vectors.shape[1]))
