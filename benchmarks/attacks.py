"""Measures attackers of text that Madlib and BRR release, beside what a classifier learns of it.

The paper's figure 1 (Carvalho, Vasiloudis and Feyisetan 2021): 1,000 film reviews of at most 200
words, GloVe 840B, Madlib at several epsilons, and BRR at the same mean loss, and at the epsilon at
which `calibrate words` finds as many words unchanged. All is measured by `evaluate`.

    python benchmarks/attacks.py --data ../shared/data --glove GLOVE.txt --folder build/attacks

The index, the release and every draw stay in the folder, so that a stopped run can go on.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from threadpoolctl import threadpool_limits

import quietcorpus as qc

REVIEWS, WORDS = 1_000, 200
EPSILONS = (6, 10, 15, 20)
OF_BRR = {6: 0.218, 10: 0.372, 15: 0.544, 20: 0.686}
"""The epsilons of BRR at which as many words come back unchanged (docs/measurements/words.md)."""


class Column(NamedTuple):
    """A column of the table: its title, and the measure and group of the figures in it."""

    title: str
    measure: str
    group: str = ""


COLUMNS = (
    Column("unchanged", "unchanged"),
    Column("accuracy", "words-accuracy"),
    Column("membership AUC, regression", "membership"),
    Column("network", "membership", "by a network"),
    Column("calibration", "membership", "by calibration"),
    Column("found at 1 %", "membership-power"),
    Column("rows linked", "linkage", "by words and length"),
    Column("by 3 rare words", "facts", "by 3 rare words"),
    Column("words guessed", "inversion-bayes"),
)


def variants() -> dict[str, dict[str, Any]]:
    """Return the mechanisms to compare, by name."""
    found: dict[str, dict[str, Any]] = {}
    for epsilon in EPSILONS:
        madlib = {"mechanism": "madlib", "epsilon": epsilon}
        found[f"Madlib, {epsilon}"] = madlib
        found[f"BRR, mean loss of {epsilon}"] = {
            "mechanism": "brr",
            "epsilon": {"matching": madlib},
        }
        found[f"BRR, as many unchanged as at {epsilon}"] = {
            "mechanism": "brr",
            "epsilon": OF_BRR[epsilon],
        }
    return found


def prepare(data: Path, glove: Path, folder: Path) -> None:
    """Write the reviews, the spec and the variants; build the index; release once."""
    if (folder / "released" / "release.json").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    table = pq.read_table(data / "imdb_reviews.parquet", columns=["text", "label"])
    words = np.array([len(text.split()) for text in table["text"].to_pylist()])
    rows = np.random.default_rng(0).permutation(np.flatnonzero(words <= WORDS))[:REVIEWS]
    ids = pa.array([f"r{number}" for number in range(REVIEWS)])
    pq.write_table(table.take(rows).append_column("id", ids), folder / "private.parquet")
    if not (folder / "index").exists():
        qc.build_index(glove, folder / "index", provenance="public")
    spec = {
        "release": "attacks",
        "input": {"path": str(folder / "private.parquet"), "id": "id", "keep": ["id", "label"]},
        "output": str(folder / "released"),
        "mechanism": {
            "kind": "words",
            "mechanism": "madlib",
            "epsilon": 10,
            "index": str(folder / "index"),
        },
    }
    (folder / "spec.yaml").write_text(yaml.safe_dump(spec))
    (folder / "variants.yaml").write_text(yaml.safe_dump(variants()))
    qc.release(folder / "spec.yaml")


def cell(figures: list[dict[str, Any]], column: Column, subject: str, setting: Any) -> str:
    """Format the mean over draws of a figure with its interval, or nothing if there is none."""
    for one in figures:
        key = one["measure"], one["group"], one["subject"], one["setting"]
        if key == (column.measure, column.group, subject, setting):
            ends = one["low"], one["high"]
            return f"{one['mean']:.3f}" + (f" ({ends[0]:.3f}-{ends[1]:.3f})" if ends[0] else "")
    return ""


def main() -> None:
    """Measure what is not measured yet, and print the table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True, type=Path, help="a folder: the reviews")
    parser.add_argument("--glove", required=True, type=Path)
    parser.add_argument("--folder", required=True, type=Path)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    folder = given.folder.resolve()
    prepare(given.data, given.glove, folder)
    report = folder / "report" / "evaluation.json"
    if not report.exists():
        qc.evaluate(
            folder / "released",
            against=folder / "private.parquet",
            output=folder / "report",
            spec=folder / "spec.yaml",
            label="label",
            draws=given.draws,
            compare=folder / "variants.yaml",
            workers=given.workers,
            audits=False,
        )
    figures = json.loads(report.read_text())["figures"]
    print(f"| text | {' | '.join(column.title for column in COLUMNS)} |")
    print("|---" * (len(COLUMNS) + 1) + "|")
    rows = [("as it is", "original", {}), ("shuffled, at Madlib's 10", "noise", {})]
    rows += [(name, "release", {"compare": name}) for name in variants()]
    for name, subject, setting in rows:
        cells = [cell(figures, column, subject, setting) for column in COLUMNS]
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    with threadpool_limits(1):  # on arrays of this size, more threads only wait for one another
        main()
