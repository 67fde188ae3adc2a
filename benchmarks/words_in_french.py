"""The utility of French texts word by word: macro-F1 of a classifier of film reviews.

    python benchmarks/words_in_french.py --data ../shared/data --index build/french \
      --folder build/words-in-french

The documents are divided as in `utility_languages.py`. The index is one of
`examples/spacy_vectors.py`. It prints a row for each epsilon of Madlib, over `DRAWS` releases.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from utility_languages import DRAWS, Scorer, interval, words

import quietcorpus as qc
from quietcorpus.indexes.tokenizers import Tokenizer
from quietcorpus.indexes.word_index import open_index

EPSILONS = (2, 1)
SPOKEN = {"name": "icu-words-v2", "language": "fr"}


def released(index: Path, folder: Path, epsilon: int, draw: int) -> dict[str, list[str]]:
    """Make a release of the private documents, unless that was done before; return its rows."""
    output = folder / f"release-{epsilon}-{draw}"
    if not output.exists():
        source = {"path": str(folder / "private.parquet"), "text": "text", "id": "id"}
        block = {"kind": "words", "mechanism": "madlib", "epsilon": epsilon, "index": str(index)}
        spec = {
            "release": f"french-{epsilon}-{draw}",
            "input": source | {"keep": ["id", "label"]},
            "output": str(output),
            "mechanism": block | {"tokenizer": SPOKEN},
        }
        qc.release(spec)
    rows: dict[str, list[str]] = pq.read_table(output / "data").to_pydict()
    return rows


def unchanged(before: dict[str, list[str]], rows: dict[str, list[str]]) -> float:
    """Return the share of words that are as they were."""
    pairs = [
        (old, new)
        for name, text in zip(rows["id"], rows["text"], strict=True)
        for old, new in zip(before[name], text.split(), strict=True)
    ]
    return float(np.mean([old == new for old, new in pairs]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("data", "index", "folder"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    table = pq.read_table(given.data / "lang_fr.parquet", columns=["id", "text", "label"])
    order = np.random.default_rng(0).permutation(len(table))
    cuts = len(table) * 5 // 10, len(table) * 8 // 10
    private, _, tested = (table.take(rows) for rows in np.split(order, cuts))
    pq.write_table(private, given.folder / "private.parquet", row_group_size=1_000)
    tokenizer = Tokenizer.here(SPOKEN["name"], SPOKEN["language"])
    scorer = Scorer(tested["text"].to_pylist(), tested["label"].to_pylist(), tokenizer)
    texts, labels = private["text"].to_pylist(), private["label"].to_pylist()
    known = set(open_index(str(given.index)).vocabulary.terms.to_pylist())
    listed = ([word for word in text.split() if word in known] for text in words(texts, tokenizer))
    before = dict(zip(private["id"].to_pylist(), listed, strict=True))
    print("| epsilon | unchanged | macro-F1 |\n|---|---|---|")
    print(f"| originals | | {scorer.f1(texts, labels):.2f} |", flush=True)
    for epsilon in EPSILONS:
        rows = [released(given.index, given.folder, epsilon, draw) for draw in range(DRAWS)]
        found = [scorer.f1(one["text"], one["label"]) for one in rows]
        same = np.mean([unchanged(before, one) for one in rows])
        print(f"| {epsilon} | {same:.2f} | {interval(found)} |", flush=True)


if __name__ == "__main__":
    main()
