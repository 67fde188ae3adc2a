"""The share of a classifier by words that is right, by the documents that it learns from.

    python benchmarks/classifier_by_words.py --data ../shared/data --folder build/classifier

Consumer complaints with their products are released as bags of words at N = 10, epsilon = 20 and 1
for the histogram, over the 5,000 most frequent words of English in 400 bins by frequency. It prints
a row for each number of documents, drawn without replacement: the share of right labels by five
folds, learnt from the originals and from the released rows, and tested on originals.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sp

import quietcorpus as qc
from quietcorpus.evaluation.features import counted
from quietcorpus.indexes.vocabulary import Vocabulary
from quietcorpus.pipelines.evaluate.study import by_words, labelled

SIZES = (1_500, 5_000, None)


def released(corpus: Path, folder: Path) -> Path:
    """Release the corpus, unless that was done before; return the release's folder."""
    output = folder / "release"
    if not output.exists():
        qc.build_vocabulary(folder / "list", language="en", words=5_000)
        mechanism = {
            "kind": "bag-of-words",
            "precision": 10,
            "epsilon": 20,
            "histogram_epsilon": 1,
            "vocabulary": {"public": str(folder / "list" / "words.txt")},
            "compression": {"method": "frequency", "size": 400},
        }
        source = {"path": str(corpus), "text": "text", "id": "id", "keep": ["id"]}
        spec = {"release": "c", "input": source, "output": str(output), "mechanism": mechanism}
        spec["accept"] = ["large-epsilon"]
        qc.release(spec)
    return output


def bags(release: Path, ids: list[str], size: int) -> sp.csr_array:
    """Return the released counts of documents, (n, V), in the order of their ids."""
    table = pq.read_table(release / "data").combine_chunks()
    rows = {name: row for row, name in enumerate(table["id"].to_pylist())}
    terms, counts = (table[name].chunk(0) for name in ("terms", "counts"))
    starts = np.concatenate([[0], np.cumsum(np.asarray(terms.value_lengths()))])
    parts = np.asarray(counts.flatten()), np.asarray(terms.flatten()), starts
    return sp.csr_array(parts, shape=(len(table), size))[[rows[name] for name in ids]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    corpus = given.data / "cfpb_complaints.parquet"
    release = released(corpus, given.folder)
    table = pq.read_table(corpus, columns=["id", "product", "text"])
    vocabulary = Vocabulary(pq.read_table(release / "vocabulary.parquet")["term"].to_pylist())
    texts = table["text"].combine_chunks().cast(pa.large_string())
    found = vocabulary.look_up(vocabulary.tokenizer.tokenize(texts))
    originals = counted(*found, len(vocabulary))
    noisy = bags(release, table["id"].to_pylist(), len(vocabulary))
    labels = np.array(table["product"].to_pylist(), dtype=np.object_)
    order = np.random.default_rng(0).permutation(len(labels))
    print("| documents | originals | released |\n|---|---|---|")
    for size in SIZES:
        rows = np.sort(order[:size])
        _, classes = labelled(labels[rows])
        right = (
            np.mean(by_words(labels[rows], known[rows], originals[rows], 0) == classes)
            for known in (originals, noisy)
        )
        print(f"| {len(rows):,} | {' | '.join(f'{share:.3f}' for share in right)} |", flush=True)


if __name__ == "__main__":
    main()
