"""Compression maps, and the clusters of equal size that they are made of.

Clusters of equal size: vectors assigned to near centroids of limited capacity.

Either choice is public work on public vectors, and costs no privacy.

Compression maps, which assign each of V terms to one of K bins (LPLP, section 4).

A map is public. It may depend on public vectors and on the noisy histogram, never on the text.
"""

from __future__ import annotations

import warnings
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from quietcorpus.compiled import compiled

MOST_DISTANCES = 50_000_000
"""Vectors times centroids, at most, for the optimal choice."""

BYTES_OF_DISTANCE = 24
"""The memory for each of them while the costs are made whole numbers; 8 afterwards."""

_UNITS = 2.0**40
_FAR = 2**62


class Assignment(StrEnum):
    """The ways to choose a cluster with room for every vector."""

    GREEDY = "greedy"
    OPTIMAL = "optimal"


def assign(
    vectors: npt.NDArray[np.float32], centroids: npt.NDArray[np.float32], assignment: Assignment
) -> npt.NDArray[np.int32]:
    """Return each vector's cluster, int32 (V,); the clusters' sizes differ by at most one.

    The first V mod K clusters have room for one vector more than the others.

    Args:
        vectors: float32 (V, d).
        centroids: float32 (K, d), at most V.
        assignment: `greedy` lets the vectors choose one by one, those first that would lose most by
            their second choice. `optimal` makes the sum of squared distances least, to within V
            times 2^-40 of the largest difference between two distances of a vector.

    Raises:
        ValueError: V times K is above `MOST_DISTANCES`, for `optimal`.
    """
    terms, clusters = len(vectors), len(centroids)
    room = np.full(clusters, terms // clusters)
    room[: terms % clusters] += 1
    if assignment is Assignment.GREEDY:
        chosen: npt.NDArray[np.int32] = _greedy(vectors, centroids, room)
        return chosen
    if terms * clusters > MOST_DISTANCES:
        raise ValueError(f"{terms} vectors times {clusters} clusters are above {MOST_DISTANCES}")
    # |v - c|^2 less the vector's own norm, which every cluster shares, and less the nearest's.
    wide = centroids.astype(np.float64)
    distances = (wide * wide).sum(axis=1) - 2 * (vectors.astype(np.float64) @ wide.T)
    distances -= distances.min(axis=1, keepdims=True)
    # In whole numbers no rounding can make a circle of moves seem to gain for ever.
    scale = _UNITS / (float(distances.max()) or 1.0)
    best: npt.NDArray[np.int32] = _optimal(np.rint(distances * scale).astype(np.int64), room)
    return best


@compiled
def _greedy(vectors, centroids, room):  # type: ignore[no-untyped-def]
    terms, clusters = len(vectors), len(centroids)
    regret = np.empty(terms, dtype=np.float32)
    norms = (centroids * centroids).sum(axis=1)
    for term in range(terms):
        # |v - c|^2 less the term's own norm, which every cluster shares.
        distances = norms - 2 * np.dot(centroids, vectors[term])
        nearest = distances.argmin()
        best = distances[nearest]
        distances[nearest] = np.inf
        regret[term] = distances.min() - best
    left = room.copy()
    assigned = np.empty(terms, dtype=np.int32)
    for term in np.argsort(-regret):
        distances = norms - 2 * np.dot(centroids, vectors[term])
        for cluster in range(clusters):
            if left[cluster] == 0:
                distances[cluster] = np.inf
        nearest = distances.argmin()
        assigned[term] = nearest
        left[nearest] -= 1
    return assigned


@compiled
def _optimal(costs, room):  # type: ignore[no-untyped-def]
    """Minimise the sum of costs, int64 (V, K), by successive shortest paths between clusters.

    At first every term is where it costs least: best for clusters of the sizes that come out. Then
    one term at a time is taken from a cluster that is too full to the emptiest, by the cheapest
    chain of moves through others, which keeps the choice best for the sizes it makes (Ahuja,
    Magnanti and Orlin, Network Flows, 1993, section 9.7).
    """
    terms, clusters = costs.shape
    assigned = np.empty(terms, dtype=np.int32)
    over = -room
    for term in range(terms):
        assigned[term] = costs[term].argmin()
        over[assigned[term]] += 1
    losses = np.empty((clusters, clusters), dtype=np.int64)
    movers = np.empty((clusters, clusters), dtype=np.int32)
    stale = np.ones(clusters, dtype=np.bool_)
    while over.max() > 0:
        _update(costs, assigned, stale, losses, movers)
        before = _cheapest_chains(losses, over)
        end = over.argmin()
        stale[:] = False
        over[end] += 1
        stale[end] = True
        while before[end] >= 0:
            start = before[end]
            assigned[movers[start, end]] = end
            end = start
            stale[end] = True
        over[end] -= 1
    return assigned


@compiled
def _update(costs, assigned, stale, losses, movers):  # type: ignore[no-untyped-def]
    """Find anew, for each stale cluster and each other, the term that loses least by a move."""
    terms, clusters = costs.shape
    for cluster in range(clusters):
        if stale[cluster]:
            losses[cluster] = _FAR
    for term in range(terms):
        own = assigned[term]
        if stale[own]:
            for other in range(clusters):
                loss = costs[term, other] - costs[term, own]
                if loss < losses[own, other]:
                    losses[own, other] = loss
                    movers[own, other] = term


@compiled
def _cheapest_chains(losses, over):  # type: ignore[no-untyped-def]
    """Return each cluster's predecessor on the cheapest chain of moves from one that is too full.

    Losses may be negative, but no circle of them is (Bellman and Ford).
    """
    clusters = len(over)
    reached = np.where(over > 0, 0, _FAR)
    before = np.full(clusters, -1, dtype=np.int32)
    waiting = over > 0
    while waiting.any():
        for cluster in np.flatnonzero(waiting):
            waiting[cluster] = False
            for other in range(clusters):
                if losses[cluster, other] == _FAR:  # an empty cluster has no term to move
                    continue
                found = reached[cluster] + losses[cluster, other]
                if found < reached[other]:
                    reached[other] = found
                    before[other] = cluster
                    waiting[other] = True
    return before


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
