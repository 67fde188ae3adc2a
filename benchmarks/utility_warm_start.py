"""The gain from a start of the training from public vectors (`training.start`), on film reviews.

Each of 10,000 reviews counts as a user, of the first 500 words of a public list, with 20
dimensions. The public vectors are these words' of GloVe, in their first 20 principal components,
since GloVe has none of so few dimensions. `sgd` at epsilon 8 trains from random numbers and from
these vectors, on the same users in each step, at the usual learning rate and at a third of it.
Results are kept, so that a stopped run can go on.

    python benchmarks/utility_warm_start.py --reviews REVIEWS.parquet --glove GLOVE.txt \
        --output FOLDER [--draws 1]
"""

from __future__ import annotations

import argparse
import json
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from utility_embeddings import COURSE, RATE, Experiment, last, score_once, table

USERS, WORDS, DIMENSIONS, EPSILON = 10_000, 500, 20, 8
HELD = 5  # one document in so many is held out of training, to test the classifier


def some_reviews(path: str, folder: Path) -> str:
    """Write as many reviews, by chance, as leave `USERS` to train on."""
    reviews = pq.read_table(path)
    count = USERS * HELD // (HELD - 1)
    chosen = np.random.default_rng(0).permutation(len(reviews))[:count]
    some = str(folder / "reviews.parquet")
    pq.write_table(reviews.take(pa.array(chosen)), some)
    return some


def reduced(vectors: np.ndarray, dimensions: int) -> np.ndarray:
    """Return the first principal components of vectors, float32 (V, d), of length one."""
    centred = vectors - vectors.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    found = centred @ axes[:dimensions].T
    return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)


def main() -> None:
    """Measure what is not measured yet, and print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--reviews", required=True)
    parser.add_argument("--glove", required=True)
    parser.add_argument("--output", required=True)
    parser.add_argument("--draws", type=int, default=1)
    given = parser.parse_args()
    folder = Path(given.output)
    folder.mkdir(parents=True, exist_ok=True)
    store = folder / "warm-start.json"
    results = json.loads(store.read_text()) if store.exists() else {}
    reviews = some_reviews(given.reviews, folder)
    experiment = Experiment("reviews", reviews, given.glove, WORDS, DIMENSIONS)

    once = partial(score_once, experiment, results, store)
    start = reduced(experiment.public, DIMENSIONS)
    once("word2vec without privacy", lambda: experiment.gold)
    once("the public vectors", lambda: start)
    for draw in range(given.draws):
        for rate in (RATE, RATE / 3):
            for name, own in (("random", None), ("public", start)):
                states = experiment.sgd(EPSILON, draw, COURSE, rate=rate, start=own)
                once(f"{name} start, rate {rate:g} {draw}", partial(last, states))
    print(table(results))


if __name__ == "__main__":
    main()
