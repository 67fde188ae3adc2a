"""Compression maps, which assign each of V terms to one of K bins (LPLP, section 4).

A map is public. It may depend on public vectors and on the noisy histogram, never on the text.
"""

from __future__ import annotations

import warnings
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from .assignment import Assignment, assign

Bins = npt.NDArray[np.int32]
"""Each term's bin, int32 (V,), with values in 0 .. K - 1; no bin is empty."""


class Method(StrEnum):
    """The maps that a release can choose from."""

    NONE = "none"
    RANDOM = "random"
    FREQUENCY = "frequency"
    EMBEDDING_CLUSTER = "embedding-cluster"
    EMBEDDING_DISPERSE = "embedding-disperse"

    @property
    def sized(self) -> bool:
        """Return whether the number of bins is chosen; otherwise every term has its own."""
        return self is not Method.NONE

    @property
    def embedded(self) -> bool:
        """Return whether the map is made of public word vectors."""
        return self in (Method.EMBEDDING_CLUSTER, Method.EMBEDDING_DISPERSE)


def bins_of(
    method: Method,
    terms: int,
    bins: int,
    generator: np.random.Generator,
    *,
    weights: npt.NDArray[np.int64] | None = None,
    vectors: npt.NDArray[np.float32] | None = None,
    assignment: Assignment = Assignment.GREEDY,
) -> Bins:
    """Make a map of `terms` terms.

    Args:
        method: the map.
        terms: the number of terms V.
        bins: the number of bins K; V for a method that is not sized.
        generator: the source of the map's random choices.
        weights: the noisy histogram, (V,), for `frequency`.
        vectors: the terms' public vectors, (V, d), for a method that is embedded.
        assignment: how `embedding-cluster` fills clusters of equal size.

    Raises:
        ValueError: more terms times bins than `assignment.MOST_DISTANCES`, for `optimal`.
    """
    match method:
        case Method.NONE:
            return identity(terms)
        case Method.RANDOM:
            return random(terms, bins, generator)
        case Method.FREQUENCY:
            assert weights is not None
            return frequency(weights, bins)
        case Method.EMBEDDING_CLUSTER:
            assert vectors is not None
            return embedding_cluster(vectors, bins, generator, assignment)
        case Method.EMBEDDING_DISPERSE:
            assert vectors is not None
            return embedding_disperse(vectors, bins, generator)


def identity(terms: int) -> Bins:
    """Give every term its own bin: no compression."""
    return np.arange(terms, dtype=np.int32)


def random(terms: int, bins: int, generator: np.random.Generator) -> Bins:
    """Partition the terms uniformly at random into bins whose sizes differ by at most one."""
    return _deal(generator.permutation(terms), bins)


def frequency(weights: npt.NDArray[np.int64], bins: int) -> Bins:
    """Deal the terms round-robin, by falling noisy count: a bin gets one term of each stratum."""
    return _deal(np.argsort(-weights, kind="stable"), bins)


def embedding_cluster(
    vectors: npt.NDArray[np.float32],
    bins: int,
    generator: np.random.Generator,
    assignment: Assignment = Assignment.GREEDY,
) -> Bins:
    """Make every cluster a bin, of K clusters whose sizes differ by at most one."""
    return equal_clusters(vectors, bins, generator, assignment)


def embedding_disperse(
    vectors: npt.NDArray[np.float32], bins: int, generator: np.random.Generator
) -> Bins:
    """Spread each of ceil(V / K) clusters of at most K terms over bins, at most one term a bin."""
    terms = len(vectors)
    clusters = equal_clusters(vectors, -(-terms // bins), generator)
    return _deal(np.argsort(clusters, kind="stable"), bins)


def equal_clusters(
    vectors: npt.NDArray[np.float32],
    clusters: int,
    generator: np.random.Generator,
    assignment: Assignment = Assignment.GREEDY,
) -> Bins:
    """Run k-means, then put each vector at a near centroid with room (sizes differ by <= 1).

    Raises:
        ValueError: more vectors times clusters than `assignment.MOST_DISTANCES`, for `optimal`.
    """
    if clusters == 1:
        return np.zeros(len(vectors), dtype=np.int32)
    from scipy.cluster.vq import (
        kmeans2,
    )  # imported here because it takes a third of a second

    # FAISS's k-means is a fifth faster, but it gave other clusters for other processors, and splits
    # empty ones by draws of its own: a release's bytes would change.
    seeds = vectors[generator.choice(len(vectors), clusters, replace=False)]
    with warnings.catch_warnings():
        # A cluster that runs empty keeps its centroid; `assign` fills every cluster in any case.
        warnings.filterwarnings("ignore", message="One of the clusters is empty")
        centroids, _ = kmeans2(vectors, seeds, iter=20, minit="matrix", missing="warn")
    return assign(vectors, centroids.astype(np.float32), assignment)


def _deal(order: npt.NDArray[np.int64], bins: int) -> Bins:
    """Deal the terms, in `order`, to the bins in turn."""
    dealt = np.empty(len(order), dtype=np.int32)
    dealt[order] = np.arange(len(order)) % bins
    return dealt
