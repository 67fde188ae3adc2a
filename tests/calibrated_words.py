"""Calibrations of words: an index, the settings of a small one, and the files that it makes."""

from __future__ import annotations

import itertools
import string
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from quietcorpus.evaluation.distances import euclidean_distances, hamming_distances
from quietcorpus.indexes.tokenizer import NAME
from quietcorpus.indexes.vocabulary import Vocabulary
from quietcorpus.indexes.word_index import WordIndex, open_index, save
from quietcorpus.indexes.word_index_manifest import IndexManifest
from quietcorpus.pipelines.kinds.words.calibrate_report import WordSettings
from quietcorpus.pipelines.prepare.distances import summary
from quietcorpus.transforms.privatizers.words import WordMechanism

FILES = ["calibration.json", "calibration.parquet", "calibration.png", "calibration.svg"]
WORDS = ["".join(letters) for letters in itertools.product(string.ascii_lowercase, repeat=2)]
HALF = Fraction(1, 2)
GRIDS = {
    WordMechanism.MADLIB: (Fraction(2), Fraction(13, 2), Fraction(20)),
    WordMechanism.VICKREY: (Fraction(2), Fraction(13, 2), Fraction(20)),
    WordMechanism.BRR: (Fraction(1, 4), Fraction(1, 2), Fraction(1)),
    WordMechanism.TEM: (Fraction(2), Fraction(13, 2), Fraction(20)),
    WordMechanism.EXPONENTIAL: (Fraction(2), Fraction(13, 2), Fraction(20)),
}


def make_index(folder: Path, count: int = 300) -> WordIndex:
    generator = np.random.default_rng()
    vectors = generator.normal(size=(count, 8)).astype(np.float32)
    codes = generator.integers(2**64, size=(count, 2), dtype=np.uint64)
    manifest = IndexManifest(
        provenance="public",
        guarantee=None,
        source={"uri": "vectors.txt", "sha256": "0" * 64},
        words=count,
        dimensions=8,
        bits=128,
        tokenizer=NAME,
        seed=1,
        measures={},
        distances={
            "euclidean": summary(euclidean_distances(vectors, 1)),
            "hamming": summary(hamming_distances(codes)),
        },
        builder="quietcorpus test",
    )
    folder.mkdir()
    save(str(folder), manifest, Vocabulary(WORDS[:count]), vectors, codes)
    return open_index(str(folder))


def small(mechanism: WordMechanism, **changes: Any) -> WordSettings:
    given = {"epsilons": GRIDS[mechanism], "words": 150, "draws": 120, "seed": 7}
    if mechanism is WordMechanism.VICKREY:
        given["tuning"] = HALF
    return WordSettings(mechanism, **(given | changes))


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
