"""The loss of the greedy choice of clusters of equal size, against the best assignment.

The map `embedding-cluster` puts each vector at the nearest centroid with room, those first that
would lose most by their second choice, or makes the best assignment (`assignment: optimal`). The
loss is the mean squared distance to the assigned centroid; beside it stands that of the nearest
centroids, without equal sizes. SciPy's Hungarian method (`linear_sum_assignment`), with as many
copies of each centroid as it has room, checks the best one where it is quick enough.

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

from quietcorpus.indexes.assignment import Assignment, assign
from quietcorpus.indexes.vectors import read

CASES = (
    (1_000, 20),
    (1_000, 100),
    (2_000, 100),
    (4_000, 100),
    (4_000, 400),
    (8_000, 400),
    (30_000, 400),
)
CHECKED = 2_000
"""Words up to which SciPy's method is run, too."""


def losses(vectors: np.ndarray, clusters: int) -> tuple[list[float], list[float]]:
    """Return the losses of the nearest, the greedy and the best choice, and the times.

    The times are those of the greedy choice, of the best one, and of SciPy's if it is run.
    """
    generator = np.random.default_rng(0)
    seeds = vectors[generator.choice(len(vectors), clusters, replace=False)]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="One of the clusters is empty")
        centroids, _ = kmeans2(vectors, seeds, iter=20, minit="matrix", missing="warn")
    centroids = centroids.astype(np.float32)
    squares = (vectors**2).sum(axis=1)[:, None] + (centroids**2).sum(axis=1)
    squares -= 2 * vectors @ centroids.T
    rows = np.arange(len(vectors))
    found, times = [squares.min(axis=1)], []
    for assignment in Assignment:
        began = time.process_time()
        chosen = assign(vectors, centroids, assignment)
        times.append(time.process_time() - began)
        found.append(squares[rows, chosen])
    if len(vectors) <= CHECKED:
        copies = np.repeat(np.arange(clusters), np.bincount(rows % clusters, minlength=clusters))
        began = time.process_time()
        _, best = linear_sum_assignment(squares[:, copies])
        times.append(time.process_time() - began)
        np.testing.assert_allclose(squares[rows, copies[best]].sum(), found[-1].sum(), rtol=1e-5)
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
        "| words | clusters | nearest | greedy | best | greedy above best | greedy, s | best, s "
        "| SciPy's, s |"
    )
    print("|---" * 9 + "|")
    for terms, clusters in CASES:
        (nearest, greedy, best), times = losses(values[:terms], clusters)
        spent = [f"{seconds:.2f}" for seconds in times] + [""] * (3 - len(times))
        print(
            f"| {terms:,} | {clusters} | {nearest:.2f} | {greedy:.2f} | {best:.2f} "
            f"| {greedy / best - 1:.1%} | {' | '.join(spent)} |"
        )


if __name__ == "__main__":
    main()
