"""Measures what `smooth: true` adds for the classifier of `utility_public.py`, on its pools.

The same draws of the noise are weighted by the votes that stand out, and by smoothed votes. Scores
are of the rows that a release has, and stay in the folder, so that a stopped run can go on.

    python benchmarks/utility_public_smooth.py --data ../shared/data --folder build/utility-public

With `--pools reviews` alone it takes a third of the time.
"""

from __future__ import annotations

import argparse
from fractions import Fraction
from pathlib import Path

import numpy as np
from utility_public import (
    DELTA,
    DRAWS,
    EPSILONS,
    NEAREST,
    POOLS,
    Election,
    Scores,
    interval,
    prepare,
    released,
)

from quietcorpus.mechanisms.vote_estimates import estimates
from quietcorpus.mechanisms.votes import Votes

NUMBERS = 20, NEAREST
RULES = "votes", "smoothed"


def measure(name: str, election: Election, pooled: set[str], scores: Scores) -> None:
    """Measure what is not measured yet of one pool."""
    size = len(election.pool.texts)
    guesses = [np.random.default_rng(draw).integers(2, size=size) for draw in range(DRAWS)]
    every = np.arange(size), None
    asked = [(every[0], own, every[1]) for own in guesses]
    scores.once(f"{name}, unweighted", election.classifier.score, *asked)
    reviews = np.array([text in pooled for text in election.pool.texts.to_pylist()])
    for nearest in NUMBERS:
        exact = election.sums(Votes(nearest, Fraction(1), DELTA))
        learn = election.classifier.as_released
        scores.once(f"{name}, {nearest}, no noise", learn, (exact, exact > 0))
        for epsilon in EPSILONS:
            votes = Votes(nearest, Fraction(epsilon), DELTA)
            draws = [released(votes, exact) for _ in range(DRAWS)]
            for rule in RULES:
                vectors = election.pool.vectors if rule == "smoothed" else None
                given = [estimates(votes, noisy, vectors) for noisy in draws]
                key = f"{name}, {nearest}, {epsilon}, {rule}"
                scores.once(key, learn, *((own, own > 0) for own in given))
                rows = [(own,) for own in given]
                scores.once(f"{key}, rows", lambda own: float((own > 0).sum()), *rows)
                on = [(own, reviews) for own in given]
                scores.once(f"{key}, on reviews", share_on, *on)


def share_on(given: np.ndarray, reviews: np.ndarray) -> float:
    """Return the share of the weight that falls on reviews, each label weighing the same."""
    return float((given[:, reviews].sum(axis=1) / given.sum(axis=1)).mean())


def report(found: dict[str, list[float]], pools: list[str]) -> None:
    """Print the tables in Markdown."""
    heads = " | ".join(f"{float(Fraction(one)):g}" for one in EPSILONS)
    print(f"\n| macro-F1 at epsilon | `nearest` | {heads} | without noise |\n|{'---|' * 7}")
    kept = []
    for name in pools:
        base = np.mean(found[f"{name}, unweighted"])
        for nearest in NUMBERS:
            (exact,) = found[f"{name}, {nearest}, no noise"]
            for rule in RULES:
                own = [found[f"{name}, {nearest}, {epsilon}, {rule}"] for epsilon in EPSILONS]
                row = f"| {POOLS[name]}, {rule} | {nearest}"
                print(f"{row} | {' | '.join(map(interval, own))} | {exact:.3f} |")
                shares = [f"{(np.mean(one) - base) / (exact - base):.3f}" for one in own]
                kept.append(f"{row} | {' | '.join(shares)} |")
    print(f"\n| share of the gain without noise | `nearest` | {heads} |\n|{'---|' * 6}")
    print("\n".join(kept))
    print(f"\n| rows (share on reviews) | `nearest` | {heads} |\n|{'---|' * 6}")
    for name in pools:
        for nearest in NUMBERS:
            for rule in RULES:
                keys = [f"{name}, {nearest}, {epsilon}, {rule}" for epsilon in EPSILONS]
                cells = [
                    f"{np.mean(found[f'{key}, rows']):,.0f} "
                    f"({np.mean(found[f'{key}, on reviews']):.3f})"
                    for key in keys
                ]
                print(f"| {POOLS[name]}, {rule} | {nearest} | {' | '.join(cells)} |")


def main() -> None:
    """Measure what is not measured yet, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True, type=Path, help="a folder: the three corpora")
    parser.add_argument("--folder", required=True, type=Path)
    parser.add_argument("--pools", nargs="+", choices=POOLS, default=list(POOLS))
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    private, pooled, tested = prepare(given.data, given.folder)
    scores = Scores(given.folder / "smooth.json")
    for name in given.pools:
        election = Election(name, given.folder, private, tested)
        measure(name, election, set(pooled.texts), scores)
    report(scores.found, given.pools)


if __name__ == "__main__":
    main()
