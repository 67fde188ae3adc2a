"""Random bins against bins by frequency, on documents whose topics are known.

As in LPLP's first experiment, documents are drawn from latent Dirichlet allocation over 100 words,
which go into 10 bins. They are released and decompressed with the library's own mechanism, and
topics are fitted to what comes out. The score of a true topic is its overlap with the nearest
fitted one, one minus the total variation distance; 95 % intervals are over draws of corpus, map and
noise.

    PYTHONPATH=.:tests python benchmarks/known_topics_maps.py \\
        --output docs/measurements/bags-of-words.md
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import utility
from known_topics import Case, overlap, words
from marked_tables import write_tables
from scipy import stats
from utility import Cell, Corpus

from quietcorpus.evaluation.topic_model import draw
from quietcorpus.evaluation.topics import fit_topics
from quietcorpus.indexes.vocabulary import Vocabulary

CASE = Case(100, 10, 5, 1_000, 100)
MAPS, EPSILONS = ("random", "frequency"), ("50", "5", "1/2")
SWEEPS = 100


def corpus(seed: int) -> tuple[Corpus, np.ndarray]:
    """Draw documents, and return them with their topics, (T, V)."""
    generator = np.random.default_rng(seed)
    weights = 1 / np.arange(10, CASE.terms + 10)
    counts, truth = draw(weights, CASE.documents, CASE.length, CASE.topics, generator)
    offsets = np.concatenate([[0], np.cumsum(np.asarray(counts.sum(axis=1)).ravel())])
    ids = np.repeat(counts.indices, counts.data).astype(np.int32)
    texts = [b"%d" % number for number in range(CASE.documents)]
    terms = Vocabulary(words(CASE.terms).tolist())
    return Corpus(texts, terms, offsets.astype(np.int64), ids, counts), truth


def scores(seed: int) -> Iterator[tuple[str, float]]:
    """Yield the score of the originals, of one topic for all, and of each map and epsilon."""
    original, truth = corpus(seed)

    def score(counts: object) -> float:
        return overlap(truth, fit_topics(counts, CASE.topics, iterations=SWEEPS, seed=seed))

    yield "original", score(original.counts)
    yield "floor", overlap(truth, truth.mean(axis=0, keepdims=True))
    for method in MAPS:
        for epsilon in EPSILONS:
            cell = Cell(seed, method, "tight", CASE.bins, epsilon, 1)
            yield f"{method} {epsilon}", score(utility.release(cell, original))


def spread(values: list[float]) -> str:
    """Return the mean with its 95 % interval (Student's t)."""
    half = stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values))
    return f"{np.mean(values):.3f} ({np.mean(values) - half:.3f}-{np.mean(values) + half:.3f})"


def main() -> None:
    """Measure, and print the table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--output", type=Path, help="a Markdown file with a section for it")
    given = parser.parse_args()
    runs = [dict(scores(seed)) for seed in range(given.draws)]
    lines = ["| epsilon / N | random | frequency | frequency less random |", "|---|---|---|---|"]
    for epsilon in EPSILONS:
        of = {method: [run[f"{method} {epsilon}"] for run in runs] for method in MAPS}
        more = [b - a for a, b in zip(of["random"], of["frequency"], strict=True)]
        cells = [spread(of["random"]), spread(of["frequency"]), spread(more)]
        lines.append(f"| {epsilon} | {' | '.join(cells)} |")
    for name, title in (("original", "the corpus as it is"), ("floor", "one topic for all")):
        lines.append(f"| {title} | {spread([run[name] for run in runs])} | | |")
    print("\n".join(lines))
    if given.output:
        write_tables(given.output, "\n".join(lines), "known topics and maps")


if __name__ == "__main__":
    main()
