"""Measures of what a release keeps in languages other than English, by classifiers of real text.

Of each labelled corpus, half of the documents are private, three tenths are the pool, and a fifth
is tested. A release of public texts, made by the product's command with the labels as strata, is
the table on which a logistic regression (TF-IDF) learns. Words are those of `icu-words-v2`.

    python benchmarks/utility_languages.py --data ../shared/data --folder build/utility-languages

It prints a row for each language; each release is drawn anew, `DRAWS` times.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy import stats
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

import quietcorpus as qc
from quietcorpus.evaluation import classification
from quietcorpus.indexes.tokenizers import Tokenizer

NAMES = {
    "fr": "French",
    "de": "German",
    "zh": "Chinese",
    "ar": "Arabic",
    "th": "Thai",
    "ja": "Japanese",
}
EPSILONS = (4, 1)
DELTA = "1e-6"
NEAREST = 100
DRAWS = 5


def words(texts: list[str], tokenizer: Tokenizer) -> list[str]:
    """Return each text's words, with a space between."""
    tokens = tokenizer.tokenize(pa.array(texts, pa.large_string()))
    data = tokens.data.tobytes()
    spans = zip(tokens.starts.tolist(), tokens.ends.tolist(), strict=True)
    found = [data[start:end].decode() for start, end in spans]
    bounds = tokens.offsets.tolist()
    return [" ".join(found[a:b]) for a, b in zip(bounds, bounds[1:], strict=False)]


class Scorer:
    """A classifier that is tested on the same texts, whatever it learns from."""

    def __init__(self, texts: list[str], labels: list[str], tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._tested, self._labels = words(texts, tokenizer), sorted(set(labels))
        self._truth = self._numbers(labels)

    def _numbers(self, labels: list[str]) -> np.ndarray:
        return np.array([self._labels.index(label) for label in labels])

    def f1(self, texts: list[str], labels: list[str], weights: Any = None) -> float:
        """Return macro-F1 of what these texts teach."""
        if len(set(labels)) < 2:
            return float("nan")
        features = TfidfVectorizer(token_pattern=r"\S+", lowercase=False, sublinear_tf=True)
        learnt = LogisticRegression(max_iter=1000).fit(
            features.fit_transform(words(texts, self._tokenizer)),
            self._numbers(labels),
            sample_weight=weights,
        )
        predicted = learnt.predict(features.transform(self._tested))
        return float(classification.scores(self._truth, predicted).f1)


def interval(found: list[float]) -> str:
    """Return the mean with half the width of its 95 % interval over draws."""
    half = stats.t.ppf(0.975, len(found) - 1) * np.std(found, ddof=1) / np.sqrt(len(found))
    return f"{np.mean(found):.2f} ± {half:.2f}"


def released(folder: Path, code: str, epsilon: int, draw: int, labels: list[str]) -> Path:
    """Make a release by the command's own function; return its folder."""
    output = folder / f"release-{epsilon}-{draw}"
    if not output.exists():
        spec = {
            "release": f"{code}-{epsilon}-{draw}",
            "input": {"path": str(folder / "private.parquet"), "text": "text"},
            "output": str(output),
            "mechanism": {
                "kind": "public-texts",
                "pool": str(folder / "pool"),
                "epsilon": epsilon,
                "delta": float(DELTA),
                "nearest": NEAREST,
                "strata": {"column": "label", "labels": labels},
            },
        }
        (folder / "spec.json").write_text(json.dumps(spec))
        qc.release(spec)
    return output


def language(code: str, data: Path, folder: Path) -> str:
    """Return the row of one language."""
    folder.mkdir(parents=True, exist_ok=True)
    table = pq.ParquetFile(data / f"lang_{code}.parquet").read(["text", "label"], use_threads=False)
    order = np.random.default_rng(0).permutation(len(table))
    cuts = len(table) * 5 // 10, len(table) * 8 // 10
    private, pooled, tested = (table.take(rows) for rows in np.split(order, cuts))
    pq.write_table(private, folder / "private.parquet", row_group_size=1_000)
    pq.write_table(pooled.select(["text"]), folder / "pooled.parquet")
    labels = sorted(set(table["label"].to_pylist()))
    tokenizer = Tokenizer.here("icu-words-v2", code)
    scorer = Scorer(*(tested[name].to_pylist() for name in ("text", "label")), tokenizer)
    if not (folder / "pool").exists():
        qc.build_pool(
            folder / "pooled.parquet",
            folder / "pool",
            provenance="public",
            encoder="lsa",
            tokenizer="icu-words-v2",
            language=code,
        )
    clean = [
        scorer.f1(part["text"].to_pylist(), part["label"].to_pylist()) for part in (private, pooled)
    ]
    cells = []
    for epsilon in EPSILONS:
        found = []
        for draw in range(DRAWS):
            texts = pq.ParquetFile(released(folder, code, epsilon, draw, labels) / "texts.parquet")
            rows = texts.read(use_threads=False)
            columns = (rows[name].to_pylist() for name in ("text", "label", "weight"))
            found.append(scorer.f1(*columns))
        cells.append(interval(found))
    size = f"{len(private):,} / {len(pooled):,}"
    return (
        f"| {NAMES[code]} | {len(labels)} | {size} | {clean[0]:.2f} | {clean[1]:.2f} "
        f"| {' | '.join(cells)} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--languages", nargs="+", default=list(NAMES), choices=list(NAMES))
    given = parser.parse_args()
    heads = ["language", "labels", "private / pool", "private texts", "pool's own labels"]
    heads += [f"released at {epsilon}" for epsilon in EPSILONS]
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    for code in given.languages:
        print(language(code, given.data, given.folder / code), flush=True)


if __name__ == "__main__":
    main()
