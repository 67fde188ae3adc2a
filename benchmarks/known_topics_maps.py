"""Random bins against bins by frequency, on documents whose topics are known.

As in LPLP's synthetic experiment (section 5), documents are drawn from latent Dirichlet allocation
over 100 words, which go into 10 bins. They are released and decompressed with the library's own
mechanism, and topics are fitted to the result. Two scores are given. One is the overlap of a true
topic with the nearest fitted one, one minus the total variation distance. The other is the paper's:
the Jaccard index of the 20 likeliest words of a topic that is fitted to the documents, and of the
closest topic that is fitted to the release. 95 % intervals are over draws of corpus, map and noise.

    PYTHONPATH=.:tests python benchmarks/known_topics_maps.py \\
        --output build/utility/bags-of-words.md
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
import utility
from known_topics import Case, overlap, words
from marked_tables import write_tables
from scipy import stats
from utility import Cell, Corpus

from quietcorpus.evaluation.topics import best_match_jaccard, draw, fit_topics, top_terms
from quietcorpus.indexes.tokens.vocabulary import Vocabulary

CASE = Case(100, 10, 5, 1_000, 100)
MAPS = "random", "frequency"
ACCOUNTINGS = "per-entry", "tight"
BUDGETS = ("5", 10), ("5", 1), ("1/2", 1), ("1/2", 10)
SWEEPS, TOP_TERMS, CHANCES = 100, 20, 2_000
SCORES = "overlap", "Jaccard"
PAPER = {
    "none 5 1": ".408",
    "random per-entry 5 10": ".281",
    "frequency per-entry 5 10": ".310",
    "none 1/2 10": ".108",
    "random per-entry 1/2 1": ".201",
    "frequency per-entry 1/2 1": ".301",
}
"""The paper's Jaccard indices, by the names of our rows (section 5, "Results")."""


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
    """Yield both scores of the originals, of what has no topics, and of each release."""
    original, truth = corpus(seed)
    fitted = fit_topics(original.counts, CASE.topics, iterations=SWEEPS, seed=2 * seed)
    reference = top_terms(fitted, TOP_TERMS)

    def both(name: str, counts: object) -> Iterator[tuple[str, float]]:
        found = fit_topics(counts, CASE.topics, iterations=SWEEPS, seed=2 * seed + 1)
        yield f"{name} overlap", overlap(truth, found)
        yield f"{name} Jaccard", best_match_jaccard(reference, top_terms(found, TOP_TERMS))

    yield from both("original", original.counts)
    yield from both("unigrams", utility.unigrams(Cell(seed, utility.UNIGRAMS), original))
    yield "one topic overlap", overlap(truth, truth.mean(axis=0, keepdims=True))
    yield "chance Jaccard", chance(reference, seed)
    for epsilon, precision in BUDGETS:
        whole = Cell(seed, "none", "tight", CASE.terms, epsilon, precision)
        yield from both(f"none {epsilon} {precision}", utility.release(whole, original))
        for method, accounting in product(MAPS, ACCOUNTINGS):
            cell = Cell(seed, method, accounting, CASE.bins, epsilon, precision)
            name = f"{method} {accounting} {epsilon} {precision}"
            yield from both(name, utility.release(cell, original))


def chance(reference: np.ndarray, seed: int) -> float:
    """Return the mean score of topics whose words are drawn at random."""
    generator = np.random.default_rng([seed, 1])
    drawn = generator.permuted(
        np.tile(np.arange(CASE.terms, dtype=np.int32), (CHANCES, CASE.topics, 1)), axis=2
    )
    return float(np.mean([best_match_jaccard(reference, tops[:, :TOP_TERMS]) for tops in drawn]))


def spread(values: list[float]) -> str:
    """Return the mean with its 95 % interval (Student's t)."""
    half = stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values))
    return f"{np.mean(values):.3f} ± {half:.3f}"


def table(runs: list[dict[str, float]]) -> str:
    """Format both scores of each row, and the differences of the maps, in Markdown."""
    lines = ["| release | epsilon, N | overlap | Jaccard | the paper's Jaccard |", "|---" * 5 + "|"]

    def line(title: str, budget: str, *names: str) -> None:
        found = []
        for score in SCORES:
            of = [[run.get(f"{name} {score}") for run in runs] for name in names]
            values = of[0] if len(of) == 1 else [b - a for a, b in zip(*of, strict=True)]
            found.append(spread(values) if None not in values else "")
        paper = PAPER.get(names[0], "") if len(names) == 1 else ""
        lines.append(f"| {title} | {budget} | {' | '.join(found)} | {paper} |")

    line("the documents as they are, fitted anew", "", "original")
    line("floor: redrawn unigrams", "", "unigrams")
    line("one topic for all", "", "one topic")
    line("20 words at random", "", "chance")
    for epsilon, precision in BUDGETS:
        budget, shown = f"{epsilon} {precision}", f"{epsilon}, {precision}"
        line("no map", shown, f"none {budget}")
        for accounting in ACCOUNTINGS:
            both = [f"{method} {accounting} {budget}" for method in MAPS]
            for method, name in zip(MAPS, both, strict=True):
                line(f"{method}, {accounting}", shown, name)
            line(f"*frequency less random*, {accounting}", shown, *both)
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--output", type=Path, help="a Markdown file with a section for it")
    given = parser.parse_args()
    utility.CACHE.mkdir(parents=True, exist_ok=True)
    store = utility.CACHE / "known-topics-maps.json"
    runs = json.loads(store.read_text()) if store.exists() else []
    for seed in range(len(runs), given.draws):
        runs.append(dict(scores(seed)))
        store.write_text(json.dumps(runs))
    found = table(runs[: given.draws])
    print(found)
    if given.output:
        write_tables(given.output, found, "known topics and maps")


if __name__ == "__main__":
    main()
