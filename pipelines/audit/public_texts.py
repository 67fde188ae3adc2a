"""Audits of public texts, whose votes protect a document."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

import numpy as np
import numpy.typing as npt

from quietcorpus.evaluation.audits.accounting import epsilon_recomputed
from quietcorpus.evaluation.audits.findings import Exact, Sampled
from quietcorpus.evaluation.audits.lower_bound import epsilon_at_least
from quietcorpus.mechanisms.accounting import epsilon_of, noise_multiplier_for
from quietcorpus.mechanisms.clipped_sum import STEPS
from quietcorpus.mechanisms.guarantees import round_up
from quietcorpus.mechanisms.votes import Votes
from quietcorpus.pipelines.audit.inputs import stage
from quietcorpus.pipelines.kinds.public_texts_votes import PublicTextsKind

_DELTA = Fraction(1, 100)
"""The delta of audits by draws: at the release's own, events that tell apart are not seen."""
_NUMBERS_AT_ONCE = 1 << 20
_STRATA = 2


def audits(kind: PublicTextsKind) -> list[Exact | Sampled]:
    """Return the audits of the votes and of their noise."""
    return of_votes(kind.voting.votes)


def of_votes(votes: Votes) -> list[Exact | Sampled]:
    """Return audits of a document's votes, of the accounting, and of noisy sums."""
    needed = noise_multiplier_for(votes.epsilon, votes.delta, Fraction(1), 1)
    actual = votes.noise.deviation / STEPS
    return [
        Exact(
            "a document's votes",
            1.0,
            "The figure is the length of a document's votes in the sums, in units of the norm that "
            "the noise is made for: the largest change by any of the strata's documents.",
            partial(largest_change, votes),
        ),
        Exact(
            "accounting",
            round_up(votes.epsilon),
            "A lower bound of what one Gaussian of noise multiplier "
            f"{float(actual):.4g} costs was computed by the privacy loss distribution.",
            partial(epsilon_recomputed, 1.0, float(actual), 1, float(votes.delta)),
            round_up(votes.delta),
        ),
        Sampled(
            "votes, with and without a document",
            round_up(epsilon_of(Fraction(1), needed, 1, _DELTA)),
            "Sums were released with and without a document, and those of its own texts added up; "
            f"this is what one such release costs at a delta of {float(_DELTA):g}.",
            partial(epsilon_at_least, partial(votes_released, votes), 0, 1, delta=float(_DELTA)),
            round_up(_DELTA),
        ),
    ]


def largest_change(votes: Votes) -> float:
    """Compute the largest L2 change of the sums by one document, over the norm."""
    found = 0
    for stratum in range(_STRATA):
        items = np.arange(votes.nearest, dtype=np.int64)[None]
        sums = votes.sums(items, np.array([stratum]), (_STRATA, votes.nearest + 1))
        found = max(found, sum(own**2 for own in sums.ravel().tolist()))
    return math.sqrt(found) / STEPS


def votes_released(votes: Votes, documents: int, count: int) -> npt.NDArray[np.int64]:
    """Release `count` sums over 0 or 1 documents, and add up those of its texts: (count, 1)."""
    items = np.arange(votes.nearest, dtype=np.int64)[None]
    one = votes.sums(items, np.zeros(1, np.int64), (1, votes.nearest)) * documents
    most = max(1, _NUMBERS_AT_ONCE // votes.nearest)
    sizes = [min(most, count - start) for start in range(0, count, most)]
    parts = [votes.release(np.repeat(one, size, axis=0), stage()) for size in sizes]
    found: npt.NDArray[np.int64] = np.concatenate(parts).sum(axis=1, keepdims=True)
    return found
