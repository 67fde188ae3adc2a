"""The recovery of topics from bag-of-words releases whose topics are known.

Documents are drawn from latent Dirichlet allocation, released by the real command with their noisy
bins, and reconstructed by the real command. The true number of topics is fitted to both. The score
of a true topic is its overlap with the nearest fitted topic: one minus the total variation
distance. As in LPLP's synthetic experiment, 100 words go into 10 bins; the other corpora are
larger. Finished rows are kept under build/, so that a stopped run can go on.

    PYTHONPATH=. python benchmarks/known_topics.py --seeds 3 \\
        --output docs/measurements/reconstruction.md
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

sys.path.append(str(Path(__file__).parent))

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sp
import utility
from marked_tables import write_tables
from reconstruction import CACHE, bags, resumed, run, write_spec

from quietcorpus.evaluation.topics import draw, fit_topics

SWEEPS, SUBSET_SEED = 100, 0
EPSILONS = "5", "2", "1", "1/2", "1/4"


class Case(NamedTuple):
    """A corpus: V words in K bins, T topics, n documents of a mean length."""

    terms: int
    bins: int
    topics: int
    documents: int
    length: int


CASES = (
    Case(100, 10, 5, 5000, 100),
    Case(1000, 100, 10, 5000, 100),
    Case(2000, 800, 20, 10_000, 100),
)


def words(terms: int) -> np.ndarray:
    letters = "abcdefghij"
    return np.array(["w" + "".join(letters[int(d)] for d in f"{n:04d}") for n in range(terms)])


def overlap(truth: np.ndarray, found: np.ndarray) -> float:
    """Return the mean over true topics of the overlap with the nearest fitted one."""
    return float(np.mean([np.minimum(topic, found).sum(axis=1).max() for topic in truth]))


def row(case: Case, epsilon: str, seed: int) -> dict[str, Any]:
    generator = np.random.default_rng()
    weights = 1 / np.arange(10, case.terms + 10)
    counts, truth = draw(weights, case.documents, case.length, case.topics, generator)

    def score(found: sp.csr_array) -> float:
        found = utility.subset(found, SUBSET_SEED)
        return overlap(truth, fit_topics(found, case.topics, iterations=SWEEPS, seed=seed))

    lists = np.split(words(case.terms)[np.repeat(counts.indices, counts.data)], ends(counts))
    with tempfile.TemporaryDirectory() as folder:
        texts = pa.array([" ".join(own) for own in lists])
        pq.write_table(pa.table({"text": texts}), f"{folder}/texts.parquet")
        Path(folder, "words.txt").write_text("\n".join(words(case.terms)) + "\n")
        source = {"path": f"{folder}/texts.parquet", "text": "text"}
        write_spec(Path(folder), source, Path(folder, "words.txt"), Fraction(epsilon), case.bins)
        run("release", f"{folder}/spec.yaml")
        run("reconstruct", f"{folder}/released", "--output", f"{folder}/better")
        released, better = (
            score(bags(Path(folder, kind), case.terms)) for kind in ("released", "better")
        )
    found = {"original": score(counts), "released": released, "better": better}
    floor = overlap(truth, truth.mean(axis=0, keepdims=True))
    return {"case": case, "epsilon": epsilon, "seed": seed, "floor": floor} | found


def ends(counts: sp.csr_array) -> np.ndarray:
    """Return the end of every document's words, except the last one's."""
    return np.cumsum(np.asarray(counts.sum(axis=1)).ravel())[:-1]


def table(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Yield means over the seeds, with least and greatest in brackets, in Markdown."""
    groups = defaultdict(list)
    for one in rows:
        groups[Case(*one["case"]), one["epsilon"]].append(one)
    yield (
        "| words in bins | topics | documents | epsilon / N | clipped | reconstructed "
        "| original | one topic for all | runs |"
    )
    yield "|---" * 9 + "|"
    for (case, epsilon), group in groups.items():
        scores = [
            utility.spread(one[name] for one in group)
            for name in ("released", "better", "original")
        ]
        floor = f"{np.mean([one['floor'] for one in group]):.3f}"
        yield (
            f"| {case.terms:,} in {case.bins} | {case.topics} | {case.documents:,} | {epsilon} "
            f"| {' | '.join(scores)} | {floor} | {len(group)} |"
        )


def key(one: dict[str, Any]) -> tuple[Case, str, int]:
    return Case(*one["case"]), one["epsilon"], one["seed"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--output", type=Path, help="a Markdown file with a section for it")
    options = parser.parse_args()
    CACHE.mkdir(parents=True, exist_ok=True)
    cells = list(product(CASES, EPSILONS, range(options.seeds)))
    rows = resumed(CACHE / "known-topics.jsonl", cells, key, lambda cell: row(*cell))
    text = "\n".join(table(rows))
    print(text)
    if options.output:
        write_tables(options.output, text, "known topics")


if __name__ == "__main__":
    main()
