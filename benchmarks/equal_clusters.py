"""The loss of the greedy choice of clusters of equal size, against the best assignment.

The maps `embedding-cluster` and `embedding-disperse` put each vector at the nearest centroid with
room, those first that would lose most by their second choice. The best assignment to the same
centroids is found by the Hungarian method (SciPy's `linear_sum_assignment`), with as many copies of
each centroid as it has room. The loss is the mean squared distance to the assigned centroid;
beside it stands that of the nearest centroids, without equal sizes.

    python benchmarks/equal_clusters.py --glove GLOVE.txt
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from scipy.cluster.vq import kmeans2
from scipy.optimize import linear_sum_assignment

from quietcorpus.indexes.compression import _assign
from quietcorpus.indexes.vectors import read

CASES = (1_000, 20), (1_000, 100), (2_000, 100), (4_000, 100), (4_000, 400)


def losses(vectors: np.ndarray, clusters: int) -> tuple[list[float], list[float]]:
    """Return the losses of the nearest, the greedy and the best choice, and the latter's times."""
    generator = np.random.default_rng(0)
    seeds = vectors[generator.choice(len(vectors), clusters, replace=False)]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="One of the clusters is empty")
        centroids, _ = kmeans2(vectors, seeds, iter=20, minit="matrix", missing="warn")
    squares = (vectors**2).sum(axis=1)[:, None] + (centroids**2).sum(axis=1)
    squares -= 2 * vectors @ centroids.T
    rows, began = np.arange(len(vectors)), time.process_time()
    greedy = _assign(vectors, centroids.astype(np.float32))
    between = time.process_time()
    room = np.bincount(rows % clusters, minlength=clusters)
    copies = np.repeat(np.arange(clusters), room)
    _, best = linear_sum_assignment(squares[:, copies])
    times = [between - began, time.process_time() - between]
    found = squares.min(axis=1), squares[rows, greedy], squares[rows, copies[best]]
    return [float(own.mean()) for own in found], times


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--glove", required=True, type=Path)
    glove = parser.parse_args().glove
    with glove.open("rb") as stream:
        values = read(glove.name, lambda _: stream).values
    losses(values[:100], 5)  # compiles
    print(
        "| words | clusters | nearest | greedy | best | greedy above best | greedy, s | best, s |"
    )
    print("|---" * 8 + "|")
    for terms, clusters in CASES:
        (nearest, greedy, best), times = losses(values[:terms], clusters)
        print(
            f"| {terms:,} | {clusters} | {nearest:.2f} | {greedy:.2f} | {best:.2f} "
            f"| {greedy / best - 1:.1%} | {times[0]:.2f} | {times[1]:.2f} |"
        )


if __name__ == "__main__":
    main()
