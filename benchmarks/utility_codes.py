"""The cost of shorter codes: the accuracy of a classifier that learns from BRR text, by index.

As utility_words.py, for BRR alone, with indexes that differ in the length of their codes. The
first is released at the mean loss of Madlib's epsilons; the others at the epsilon at which as many
of the words come back unchanged, so that they hide as much.

    python benchmarks/utility_codes.py --reviews REVIEWS.parquet --indexes CODES256 CODES192 \\
        --draws 5
"""

from __future__ import annotations

import argparse
from fractions import Fraction

import numpy as np
from utility_words import TRAINING, Experiment, interval

from quietcorpus.transforms.artefacts.word_index import IndexSource
from quietcorpus.transforms.privatizers.words import WordMechanism

EPSILONS = (6, 8, 10)


def main() -> None:
    """Print a row for each epsilon and index."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--reviews", required=True)
    parser.add_argument("--indexes", nargs="+", required=True)
    parser.add_argument("--draws", type=int, default=5)
    given = parser.parse_args()
    sources = [IndexSource.resolve("--indexes", path) for path in given.indexes]
    experiments = [Experiment(given.reviews, source, TRAINING) for source in sources]
    first = experiments[0]
    print(f"clean: {first.accuracy(first.training):.3f}", flush=True)
    print("| Madlib's epsilon | bits | epsilon | unchanged | accuracy | 95 % interval |")
    print("|---|---|---|---|---|---|")
    for matched in EPSILONS:
        epsilon = first.matched_by_mean(matched)
        unchanged: float | None = None
        for experiment in experiments:
            if unchanged is not None:
                epsilon = Fraction(experiment.matched_by_unchanged(unchanged))
            runs = [experiment.run(WordMechanism.BRR, epsilon) for _ in range(given.draws)]
            kept = float(np.mean([run["unchanged"] for run in runs]))
            unchanged = kept if unchanged is None else unchanged
            accuracy, half = interval([run["accuracy"] for run in runs])
            print(
                f"| {matched} | {experiment.bits} | {float(epsilon):.3g} | {kept:.3f} "
                f"| {accuracy:.3f} | {accuracy - half:.3f} to {accuracy + half:.3f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
