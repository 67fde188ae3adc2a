"""The gain from noise-aware reconstruction of a bag-of-words release, on a corpus of complaints.

For every budget, the corpus is released by the real command, with its noisy bins, and
reconstructed by the real command. Both are compared with the original by topics, and by the
accuracy of a label learnt from them (LSA of 100 dimensions, logistic regression, released to
released). The control is a corpus of the same lengths, redrawn from the words' frequencies: it has
no topics, and neither may its reconstruction. Finished rows are kept under build/, so that a
stopped run can go on.

    PYTHONPATH=. python benchmarks/reconstruction.py --seeds 3 \\
        --output docs/measurements/reconstruction.md
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parent))

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sp
import utility
from marked_tables import write_tables
from ruamel.yaml import YAML
from tqdm import tqdm

from quietcorpus.evaluation.classification import counted, out_of_fold
from quietcorpus.evaluation.topics import agreement, fit_topics, top_terms

COMPLAINTS = utility.DATA / "cfpb_complaints.parquet"
CACHE = utility.ROOT / "build" / "reconstruction"
BINS = {"5": 1600, "2": 1600, "1": 800, "1/2": 1000}
ASKED = {"5": (0.35, 0.77), "2": (0.33, 0.71), "1": (0.30, 0.63), "1/2": (0.27, None)}
TOPICS, TOP_TERMS, SWEEPS, REFERENCES = 20, 20, 100, 5
DIMENSIONS, FOLDS = 100, 3
KINDS = ("released", "better")
Cell = tuple[str, str, int, int]


class Corpus:
    """The complaints, their vocabulary, and the reference fits to them."""

    def __init__(self, folder: Path) -> None:
        loaded = utility.load(COMPLAINTS)
        self.terms = loaded.vocabulary.terms.to_pylist()
        self.counts, self.offsets = loaded.counts, loaded.offsets
        self.redrawn = np.random.default_rng(0).permutation(loaded.ids)
        table = pq.read_table(COMPLAINTS, columns=["text", "label5"])
        self.labels = np.array(table["label5"].to_pylist())
        self.vocabulary = folder / "words.txt"
        self.vocabulary.write_text("\n".join(self.terms) + "\n")
        self.references = [self.topics(self.counts, seed) for seed in range(REFERENCES)]
        self.texts = {"complaints": COMPLAINTS, "control": folder / "control.parquet"}
        pq.write_table(table.set_column(0, "text", self._control()), self.texts["control"])

    def _control(self) -> pa.Array:
        words, bounds = np.array(self.terms)[self.redrawn], self.offsets.tolist()
        pairs = zip(bounds[:-1], bounds[1:], strict=True)
        return pa.array([" ".join(words[start:end]) for start, end in pairs])

    @property
    def ceiling(self) -> float:
        """Return the topic Jaccard of the references with each other."""
        return agreement(self.references, self.references)

    @property
    def floor(self) -> float:
        """Return the topic Jaccard of the redrawn words, without noise."""
        counts = counted(self.offsets, self.redrawn, len(self.terms))
        found = [self.topics(counts, REFERENCES + seed) for seed in range(REFERENCES)]
        return agreement(self.references, found)

    def topics(self, counts: sp.csr_array, seed: int) -> np.ndarray:
        return top_terms(fit_topics(counts, TOPICS, iterations=SWEEPS, seed=seed), TOP_TERMS)

    def measured(self, counts: sp.csr_array, labels: np.ndarray, seed: int) -> dict[str, float]:
        """Return topic Jaccard with the references, label accuracy, and the ratio of lengths."""
        found = self.topics(utility.subset(counts, seed), REFERENCES + seed)
        predicted = out_of_fold(counts, labels, FOLDS, seed, DIMENSIONS)
        return {
            "jaccard": agreement(self.references, [found]),
            "accuracy": float((predicted == labels).mean()),
            "length": float(counts.sum() / self.counts.sum()),
        }


def bags(folder: Path, terms: int) -> sp.csr_array:
    """Read the counts of a release, (n, V)."""
    rows = pq.read_table(folder / "data", columns=["terms", "counts"]).combine_chunks()
    ids, counts = (rows[name].combine_chunks() for name in ("terms", "counts"))
    parts = (counts.values.to_numpy(), ids.values.to_numpy(), ids.offsets.to_numpy())
    return sp.csr_array(parts, shape=(len(rows), terms))


def labels_of(folder: Path) -> np.ndarray:
    return np.array(pq.read_table(folder / "data", columns=["label5"])["label5"].to_pylist())


def run(*arguments: str) -> float:
    """Run a command, and return its seconds."""
    begun = time.perf_counter()
    environment = os.environ | {"QUIETCORPUS_MASTER_KEY": secrets.token_hex(32)}
    subprocess.run(["quietcorpus", *arguments], env=environment, check=True, capture_output=True)
    return time.perf_counter() - begun


def write_spec(
    folder: Path, source: dict[str, Any], vocabulary: Path, epsilon: Fraction, bins: int
) -> None:
    """Write `spec.yaml`, of a release with its noisy bins that is published to `released`."""
    spec = {
        "release": "reconstruction",
        "input": source,
        "output": f"{folder}/released",
        "accept": ["large-epsilon"],
        "mechanism": {
            "kind": "bag-of-words",
            "precision": 1,
            "epsilon": float(epsilon),
            "histogram_epsilon": 0.5,
            "vocabulary": {"public": str(vocabulary)},
            "compression": {"method": "frequency", "size": bins},
            "include": ["bins"],
        },
    }
    with open(folder / "spec.yaml", "w") as stream:
        YAML(typ="safe").dump(spec, stream)


def row(corpus: Corpus, name: str, epsilon: str, bins: int, seed: int) -> dict[str, Any]:
    """Measure one release, and its reconstruction."""
    with tempfile.TemporaryDirectory() as folder:
        source = {"path": str(corpus.texts[name]), "text": "text", "keep": ["label5"]}
        write_spec(Path(folder), source, corpus.vocabulary, Fraction(epsilon), bins)
        run("release", f"{folder}/spec.yaml")
        seconds = run("reconstruct", f"{folder}/released", "--output", f"{folder}/better")
        places = {kind: Path(folder, kind) for kind in KINDS}
        measured = {
            kind: corpus.measured(bags(place, len(corpus.terms)), labels_of(place), seed)
            for kind, place in places.items()
        }
    return (
        {"corpus": name, "epsilon": epsilon, "bins": bins, "seed": seed}
        | measured
        | {"seconds": round(seconds, 1)}
    )


def table(corpus: Corpus, rows: list[dict[str, Any]]) -> str:
    """Format means over the seeds, with least and greatest in brackets, in Markdown."""
    ceiling = out_of_fold(corpus.counts, corpus.labels, FOLDS, 0, DIMENSIONS)
    lines = [
        f"Without noise: topic Jaccard {corpus.ceiling:.3f}, label accuracy "
        f"{(ceiling == corpus.labels).mean():.3f}. Of redrawn words: topic Jaccard "
        f"{corpus.floor:.3f}.",
        "",
        "| corpus | epsilon / N | K | topic Jaccard: clipped | reconstructed | asked "
        "| label accuracy: clipped | reconstructed | asked of the better | length: clipped "
        "| reconstructed | runs | seconds |",
        "|---" * 13 + "|",
    ]
    groups: dict[tuple[str, str, int], list[dict[str, Any]]] = {}
    for one in rows:
        groups.setdefault((one["corpus"], one["epsilon"], one["bins"]), []).append(one)
    for (name, epsilon, bins), group in groups.items():
        jaccard, accuracy = ASKED[epsilon] if name == "complaints" else (None, None)
        cells = [
            *(spread(group, kind, "jaccard") for kind in KINDS),
            jaccard or "",
            *(spread(group, kind, "accuracy") for kind in KINDS),
            accuracy or "",
            *(f"{np.mean([one[kind]['length'] for one in group]):.2f}" for kind in KINDS),
            len(group),
            f"{np.mean([one['seconds'] for one in group]):.0f}",
        ]
        lines.append(f"| {name} | {epsilon} | {bins} | {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def spread(rows: list[dict[str, Any]], kind: str, name: str) -> str:
    values = [row[kind][name] for row in rows]
    return f"{np.mean(values):.3f} ({min(values):.3f}-{max(values):.3f})"


def key(one: dict[str, Any]) -> Cell:
    return one["corpus"], one["epsilon"], one["bins"], one["seed"]


def resumed(
    kept: Path,
    cells: Sequence[Hashable],
    cell_of: Callable[[dict[str, Any]], Hashable],
    made: Callable[[Any], dict[str, Any]],
) -> list[dict[str, Any]]:
    """Return the rows of all cells; those in the file are not made again."""
    rows = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    done = set(map(cell_of, rows))
    for cell in tqdm(cells, unit="release"):
        if cell not in done:
            rows.append(made(cell))
            tqdm.write(json.dumps(rows[-1]))
            with kept.open("a") as stream:
                stream.write(json.dumps(rows[-1]) + "\n")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--output", type=Path, help="a Markdown file with a section of tables")
    options = parser.parse_args()
    CACHE.mkdir(parents=True, exist_ok=True)
    corpus = Corpus(CACHE)
    cells = [
        (name, epsilon, bins, seed)
        for seed in range(options.seeds)
        for name in corpus.texts
        for epsilon, bins in BINS.items()
    ]
    rows = resumed(CACHE / "rows.jsonl", cells, key, lambda cell: row(corpus, *cell))
    text = table(corpus, rows)
    print(text)
    if options.output:
        write_tables(options.output, text)


if __name__ == "__main__":
    main()
