"""Directions along which public documents differ, relative to how their sentences vary.

Fisher's linear discriminants (1936; Rao 1948 for many classes), with documents as the classes and
sentences as their members: along the first, documents' means vary most as a share of sentences'
variance. A noisy mean pays for the ball that holds its sentences, and gains where means differ, so
these are what it should be measured along. Principal directions of the means also have those along
which all sentences vary.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .candidates import (
    LARGEST_DIRECTION,
    LARGEST_LIFT,
    LEAST_RADIUS,
    MOST_DIRECTIONS,
)

_RADIUS = 0.5  # the share of public sentences that are not cut to the ball
_LEAST_SHARE = 1e-4  # of the largest variance of sentences, which other directions count as having
_SINGULAR = 1e-6  # of the largest spread of means along a direction: what counts as none


class Discriminants(NamedTuple):
    """Directions with what they are measured in; `documents.candidates` says how each is kept.

    Attributes:
        directions: float64 (e, d), whole numbers; the longest has LARGEST_DIRECTION, about.
        radii: float64 (e,): the median length of sentences along the first 1, 2, ... e of them.
        lifts: float64 (e, d), whole numbers: what a step along each adds to an embedding.
    """

    directions: npt.NDArray[np.float64]
    radii: npt.NDArray[np.float64]
    lifts: npt.NDArray[np.float64]


def discriminants(
    sentences: npt.NDArray[np.floating],
    centre: npt.NDArray[np.float64],
    documents: npt.NDArray[np.float64],
    sample: npt.NDArray[np.int64],
) -> Discriminants:
    """Find the directions of some documents, their radii, and their lifts.

    The sentences' covariance is shrunk as Ledoit and Wolf (2004) do, so that with few sentences
    the directions become the principal directions of the means. The lifts are the regression of
    documents' means on their places along the directions.

    Args:
        sentences: (n, d), embeddings of public sentences.
        centre: (d,), their mean.
        documents: (m, d), means of documents of two sentences or more.
        sample: numbers of the sentences by which the covariance is estimated.
    """
    from sklearn.covariance import ledoit_wolf

    covariance, _ = ledoit_wolf(sentences[sample] - centre, assume_centered=True)
    variances, axes = np.linalg.eigh(covariance)
    variances = np.maximum(variances, max(_LEAST_SHARE * variances[-1], LEAST_RADIUS**2))
    whitening = axes / np.sqrt(variances) @ axes.T
    spread = documents - documents.mean(axis=0)
    _, spreads, rows = np.linalg.svd(spread @ whitening, full_matrices=False)
    # Where no documents differ a direction would be long, and leave the others few steps.
    number = max(1, int((spreads[:MOST_DIRECTIONS] > _SINGULAR * spreads[0]).sum()))
    found = rows[:number] @ whitening
    longest = np.linalg.norm(found, axis=1).max()
    directions = np.rint(found / longest * LARGEST_DIRECTION)
    places = spread @ directions.T / LARGEST_DIRECTION
    lifts = np.rint(np.linalg.lstsq(places, spread, rcond=_SINGULAR)[0] * LARGEST_DIRECTION)
    squares = np.cumsum(((sentences - centre) @ directions.T / LARGEST_DIRECTION) ** 2, axis=1)
    return Discriminants(
        directions,
        np.maximum(LEAST_RADIUS, np.sqrt(np.quantile(squares, _RADIUS, axis=0))),
        np.clip(lifts, -LARGEST_LIFT, LARGEST_LIFT),
    )
