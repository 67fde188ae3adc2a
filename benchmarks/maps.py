"""Compares all compression maps in one table: complaints, by `evaluate --compare`.

The figure 2 and the table 1 of LPLP (Schofield, Yauney and Mimno): topics, latent semantics and a
classifier, for every map and the budgets epsilon / N, each over five draws with 95 % intervals.
Beside the maps stand the corpus as it is, its redrawn unigrams, full local privacy at the same
epsilon, and reconstructions of releases by `frequency`. The vocabulary is public: the first words
of GloVe 840B without English stop-words, whose vectors the embedding maps take.

    python benchmarks/maps.py --data ../shared/data --glove GLOVE.txt --folder build/maps

The defaults take minutes: 300 complaints, 1,000 words, 100 bins and two budgets. `make
utility-maps` takes more of all, and the paper's four budgets, in half an hour. Draws are kept in
the folder, so that a stopped run can go on.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import yaml
from attacks import Column, cell
from marked_tables import write_tables
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS
from threadpoolctl import threadpool_limits

import quietcorpus as qc
from quietcorpus.evaluation.intervals import over_draws
from quietcorpus.indexes.tokens.tokenizer import tokenize

CONFIDENCE = 0.95
OWN = 800
"""The bins of the release itself, by the map `frequency`, at the first budget."""

COLUMNS = (
    Column("topic Jaccard", "topic-jaccard"),
    Column("exclusivity", "exclusivity"),
    Column("coherence", "coherence"),
    Column("LSA error", "reconstruction"),
    Column("accuracy", "accuracy"),
    Column("precision", "precision"),
    Column("recall", "recall"),
    Column("macro-F1", "f1"),
    Column("length", "length"),
)


def maps(sizes: list[int], vectors: Path) -> dict[str, dict[str, Any]]:
    """Return the maps to compare, by name."""
    embedded: dict[str, Any] = {"embedding": {"public": str(vectors)}}
    methods: dict[str, dict[str, Any]] = {
        "random": {"method": "random"},
        "frequency": {"method": "frequency"},
        "cluster": {"method": "embedding-cluster", **embedded},
        "cluster, optimal": {"method": "embedding-cluster", "assignment": "optimal", **embedded},
        "disperse": {"method": "embedding-disperse", **embedded},
    }
    found: dict[str, dict[str, Any]] = {
        "none": {"compression": {"method": "none"}, "histogram_epsilon": None}
    }
    for size in sizes:
        for name, method in methods.items():
            found[f"{name}, K = {size:,}"] = {"compression": {**method, "size": size}}
    return found


def public_words(glove: Path, folder: Path, terms: int) -> None:
    """Write the vocabulary and its vectors."""
    with glove.open() as lines:
        rows = [line for line in islice(lines, 3 * terms) if len(line.split(" ")) > 2]
    words = [row.split(" ", 1)[0] for row in rows]
    tokens = tokenize(pa.array(words, pa.large_string()))
    alone = tokens.offsets[1:] - tokens.offsets[:-1] == 1
    data = tokens.data.tobytes()
    kept: dict[str, str] = {}
    for word, row, place, one in zip(words, rows, tokens.offsets, alone, strict=False):
        if one and word.encode() == data[tokens.starts[place] : tokens.ends[place]]:
            kept[word] = row
    chosen = [word for word in kept if word not in ENGLISH_STOP_WORDS][:terms]
    (folder / "words.txt").write_text("\n".join(chosen) + "\n")
    (folder / "vectors.txt").write_text("".join(kept[word] for word in chosen))


def prepare(given: argparse.Namespace, folder: Path) -> None:
    """Write the vocabulary, the vectors, the spec and the maps; release once."""
    if (folder / "released" / "release.json").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    public_words(given.glove, folder, given.terms)
    spec = {
        "release": "maps",
        "input": {
            "path": str(given.data.resolve() / "cfpb_complaints.parquet"),
            "id": "id",
            "keep": ["id", "label5"],
        },
        "output": str(folder / "released"),
        "accept": ["large-epsilon"],  # 11 for a replaced word
        "mechanism": {
            "kind": "bag-of-words",
            "precision": 1,
            "epsilon": float(given.epsilons[0]),
            "histogram_epsilon": 0.5,
            "vocabulary": {"public": str(folder / "words.txt")},
            "compression": {"method": "frequency", "size": OWN},
        },
    }
    (folder / "spec.yaml").write_text(yaml.safe_dump(spec))
    compared = maps(given.sizes, folder / "vectors.txt")
    (folder / "maps.yaml").write_text(yaml.safe_dump(compared, sort_keys=False))
    qc.release(folder / "spec.yaml")


def measured(given: argparse.Namespace, released: Path, output: Path, **more: Any) -> list[Any]:
    """Evaluate a release, unless that is done, and return the figures."""
    report = output / "evaluation.json"
    if not report.exists():
        began = time.process_time()
        qc.evaluate(
            released,
            against=given.data.resolve() / "cfpb_complaints.parquet",
            output=output,
            label="label5",
            documents=given.documents,
            audits=False,
            **more,
        )
        print(f"{(time.process_time() - began) / 60:.1f} minutes of the processor\n")
    figures: list[Any] = json.loads(report.read_text())["figures"]
    return figures


def reconstructed(
    given: argparse.Namespace, folder: Path, size: int, epsilon: str
) -> Iterator[list[Any]]:
    """Release by `frequency`, reconstruct from noisy bins, and yield figures, for each draw."""
    for draw in range(given.draws):
        own = folder / "reconstructed" / f"{size}-{epsilon}-{draw}"
        if not (own / "better" / "release.json").exists():
            own.mkdir(parents=True, exist_ok=True)
            spec = yaml.safe_load((folder / "spec.yaml").read_text())
            spec["output"] = str(own / "released")
            spec["mechanism"] |= {
                "epsilon": float(epsilon),
                "compression": {"method": "frequency", "size": size},
                "include": ["bins"],
            }
            (own / "spec.yaml").write_text(yaml.safe_dump(spec))
            qc.release(own / "spec.yaml")
            qc.reconstruct(own / "released", own / "better")
        yield measured(given, own / "better", own / "report")


def over(runs: list[list[Any]]) -> list[dict[str, Any]]:
    """Return the figures of releases, each as the mean over runs with an interval."""
    found = []
    for column in COLUMNS:
        key = column.measure, column.group, "release"
        values = [
            one["mean"]
            for figures in runs
            for one in figures
            if (one["measure"], one["group"], one["subject"]) == key
        ]
        low, high = over_draws(values, CONFIDENCE)
        figure = dict(zip(("measure", "group", "subject"), key, strict=True))
        found.append(figure | {"setting": {}, "mean": np.mean(values), "low": low, "high": high})
    return found


def table(figures: list[Any], better: dict[str, list[Any]], given: argparse.Namespace) -> str:
    """Format the figures in Markdown, with intervals; those of reconstructions by epsilon."""
    lines = [f"| map | epsilon / N | {' | '.join(column.title for column in COLUMNS)} |"]
    lines.append("|---" * (len(COLUMNS) + 2) + "|")
    first = given.epsilons[0]
    beside = (
        ("the corpus as it is", "", "original"),
        ("itself, fitted anew", "", "ceiling"),
        ("its unigrams", "", "floor"),
        ("full local privacy, Laplace", "", "laplace"),
        ("full local privacy, geometric", "", "geometric"),
        (f"frequency, K = {OWN:,}", first, "release"),
    )
    rows = [(name, epsilon, figures, subject, {}) for name, epsilon, subject in beside]
    for epsilon in given.epsilons:
        for name in maps(given.sizes, Path()):
            setting = {"compare": name, "epsilon": str(epsilon)}
            rows.append((name, epsilon, figures, "release", setting))
        name = f"frequency, K = {max(given.sizes):,}, reconstructed"
        rows.append((name, epsilon, better[epsilon], "release", {}))
    for name, epsilon, some, subject, setting in rows:
        cells = " | ".join(cell(some, column, subject, setting) for column in COLUMNS)
        lines.append(f"| {name} | {epsilon} | {cells} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True, type=Path, help="a folder: the complaints")
    parser.add_argument("--glove", required=True, type=Path)
    parser.add_argument("--folder", required=True, type=Path)
    parser.add_argument("--terms", type=int, default=1_000, help="the size of the vocabulary")
    parser.add_argument("--sizes", type=int, nargs="+", default=[100], help="numbers of bins")
    parser.add_argument("--documents", type=int, default=300, help="complaints to measure")
    parser.add_argument("--epsilons", nargs="+", default=["5", "1"], help="at N = 1")
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--output", type=Path, help="a Markdown file with a section for it")
    given = parser.parse_args()
    folder = given.folder.resolve()
    prepare(given, folder)
    figures = measured(
        given,
        folder / "released",
        folder / "report",
        spec=folder / "spec.yaml",
        draws=given.draws,
        compare=folder / "maps.yaml",
        sweep={"epsilon": given.epsilons},
    )
    better = {
        epsilon: over(list(reconstructed(given, folder, max(given.sizes), epsilon)))
        for epsilon in given.epsilons
    }
    found = table(figures, better, given)
    print(found)
    if given.output:
        write_tables(given.output, found, "maps in one table")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
