"""Measures whether a coarse first round would help: clusters of the pool, then the texts in them.

A plain float simulation on the mixed pool of `utility_public.py`. The texts are divided into 200
clusters (FAISS's k-means). In the first round a review gives the clusters of its five nearest texts
a vote of length 1, under noise for a share of the budget (in 1 / sigma^2, which adds up over rounds
of a Gaussian); clusters that reach three deviations are kept. In the second it votes for its
nearest texts in these, under noise for what is left. Both are trained on as released.

    python benchmarks/utility_public_rounds.py --data ../shared/data --folder build/utility-public
"""

from __future__ import annotations

from fractions import Fraction

import faiss
import numpy as np
from utility_public import DELTA, NEAREST, Election, places, prepare

from quietcorpus.mechanisms.clipped_sum import STEPS
from quietcorpus.mechanisms.votes import STANDS_OUT, Votes

CLUSTERS, COARSE, DRAWS = 200, 5, 2
SHARES = 0.0, 0.1, 0.3
_AT_ONCE = 2_500


def coarse(election: Election, own: np.ndarray) -> np.ndarray:
    """Count the votes for clusters, each review's of length 1."""
    found = np.zeros(own.max() + 1)
    for near in own[np.asarray(election.nearest[:, :COARSE])]:
        clusters = np.unique(near)
        found[clusters] += 1 / np.sqrt(len(clusters))
    return found


def fine(election: Election, votes: Votes, kept: np.ndarray) -> np.ndarray:
    """Count the votes for the nearest texts among those that are kept."""
    sums = np.zeros((2, len(kept)), dtype=np.int64)
    for start in range(0, len(election.nearest), _AT_ONCE):
        near = np.asarray(election.nearest[start : start + _AT_ONCE])
        good = kept[near]
        chosen = good & (np.cumsum(good, axis=1) <= votes.nearest)
        labels = election.labels[start : start + _AT_ONCE]
        for label in range(2):
            own = near[chosen & (labels == label)[:, None]]
            sums[label] += np.bincount(own, minlength=len(kept)) * votes.weight
    return sums


def main() -> None:
    """Print macro-F1, rows, and the share of their weight on reviews, for every setting."""
    data, folder = places(__doc__)
    private, pooled, tested = prepare(data, folder)
    election = Election("mixed", folder, private, tested)
    known = set(pooled.texts)
    reviews = np.array([text in known for text in election.pool.texts.to_pylist()])
    vectors = np.ascontiguousarray(election.pool.vectors)
    model = faiss.Kmeans(vectors.shape[1], CLUSTERS, niter=10, seed=1, spherical=True)
    model.train(vectors)
    own = model.index.search(vectors, 1)[1][:, 0]
    clusters, generator = coarse(election, own), np.random.default_rng(1)
    print("| `nearest` | epsilon | share for the clusters | macro-F1 | rows | on reviews |")
    print("|---|---|---|---|---|---|")
    for nearest in (20, NEAREST):
        for epsilon in ("1", "1/2"):
            votes = Votes(nearest, Fraction(epsilon), DELTA)
            sigma = float(votes.noise.noise_multiplier)
            for share in SHARES:
                found = []
                for _ in range(DRAWS):
                    kept = np.ones(len(own), dtype=np.bool_)
                    if share:
                        first = sigma / np.sqrt(share)
                        noisy = clusters + generator.normal(0, first, len(clusters))
                        kept = (noisy >= STANDS_OUT * first)[own]
                    second = sigma / np.sqrt(1 - share) * STEPS
                    sums = fine(election, votes, kept)
                    noisy = np.rint(sums + generator.normal(0, second, sums.shape)).astype(int)
                    chosen = kept & (noisy >= STANDS_OUT * second)
                    on = np.where(chosen, noisy, 0)
                    shares = on[:, reviews].sum(axis=1) / on.sum(axis=1)
                    score = election.classifier.as_released(noisy, chosen)
                    found.append((score, chosen.sum(), shares.mean()))
                score, rows, on_reviews = np.mean(found, axis=0)
                row = f"| {nearest} | {float(Fraction(epsilon)):g} | {share:g} | {score:.3f}"
                print(f"{row} | {rows:,.0f} | {on_reviews:.3f} |", flush=True)


if __name__ == "__main__":
    main()
