"""The places of sentences of other languages in an encoder's space, against those of one.

    python examples/multilingual_encoder.py build/e5
    python benchmarks/multilingual_encoder.py --data ../shared/data --encoder build/e5

A logistic regression learns seven subjects from 500 sentences in one of four languages, and is
tested on 500 in each (SIB-200). Printed is the accuracy, by the language that was learnt from. The
500 that are tested may be translations of those learnt from, in another order.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from quietcorpus.evaluation.classification import transferred
from quietcorpus.transforms.artefacts.encoder import PACKAGED, EncoderSource

LANGUAGES = ("es", "hi", "ru", "tr")
SENTENCES = 500


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--encoder", required=True)
    asked = parser.parse_args()
    print("| encoder | learnt from | " + " | ".join(LANGUAGES) + " | ms a sentence |")
    for name in (asked.encoder, PACKAGED):
        encoder = EncoderSource.resolve("encoder", name).open()
        labels, vectors, took = {}, {}, time.process_time()
        for language in LANGUAGES:
            path = asked.data / f"lang_{language}.parquet"
            table = pq.ParquetFile(path).read(use_threads=False).slice(0, 2 * SENTENCES)
            labels[language] = np.array(table["label"].to_pylist())
            vectors[language] = encoder.encode(table["text"].to_pylist())
        took = (time.process_time() - took) / (2 * SENTENCES * len(LANGUAGES))
        for one in LANGUAGES:
            known = vectors[one][:SENTENCES], labels[one][:SENTENCES]
            found = []
            for other in LANGUAGES:
                told = transferred(*known, vectors[other][SENTENCES:])
                found.append(f"{(told == labels[other][SENTENCES:]).mean():.2f}")
            print(f"| {name} | {one} | {' | '.join(found)} | {took * 1e3:.0f} |")


if __name__ == "__main__":
    main()
