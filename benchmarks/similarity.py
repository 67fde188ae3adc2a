"""Measures the public cosines of `similarity`, and the gain from more draws of a candidate.

The documents and the candidates are those of `utility_sentences_protocols.py`, whose folder this
takes or makes. The first table varies the quantiles of public cosines between which `similarity`
tells candidates apart. The second takes the mean of r draws at epsilon / r each, which together
cost epsilon. Figures are macro-F1 on released rows, by a logistic regression that learns from
released rows and from originals, by five folds.

    python benchmarks/similarity.py --data ../shared/data --folder build/utility-sentences
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from threadpoolctl import threadpool_limits
from utility_sentences_protocols import Corpus, prepared

from quietcorpus.evaluation.classification import (
    Folded,
    learnt_by_fold,
    out_of_fold,
    scores,
    told,
)
from quietcorpus.evaluation.intervals import over_draws
from quietcorpus.indexes.recoder import means
from quietcorpus.indexes.sentences import split
from quietcorpus.mechanisms.deep_candidate import (
    DeepCandidate,
    Similarities,
    Utility,
    cosines,
    on_grid,
)
from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.transforms.artefacts.candidates import CandidatesSource
from quietcorpus.transforms.artefacts.encoder import Encoder, EncoderSource

EPSILONS = 3, 10, 25
LOWS, HIGHS = (0.25, 0.5, 0.75), (0.9, 0.95, 0.99, 0.999)
BUILT = 0.5, 0.99
"""The quantiles by which candidates are built."""
DRAWS_OF_A_ROW = 1, 2, 3, 5, 8
FOLDS, SEED, CONFIDENCE = 5, 0, 0.95
AT_ONCE = 128


class Encoded(NamedTuple):
    """Sentences of documents: embeddings (total, d) and offsets (n + 1,)."""

    embeddings: npt.NDArray[np.float32]
    offsets: npt.NDArray[np.int64]


class Lab:
    """Private documents with labels, candidates for them, and public sentences."""

    def __init__(self, corpus: Corpus, folder: Path) -> None:
        self._candidates = CandidatesSource.resolve("candidates", str(folder / "candidates")).open()
        manifest = self._candidates.manifest
        encoder = EncoderSource.resolve("encoder", manifest.encoder["name"]).open()
        private = pq.read_table(folder / "private.parquet")
        public = pq.read_table(folder / "more.parquet")
        documents = encoded(encoder, private["text"], corpus.sentences)
        known = encoded(encoder, public["text"], corpus.sentences)
        self._own = self._grid(self._candidates.embeddings)
        self._cosines = cosines(self._grid(known.embeddings), self._own)
        self._sentences, self._offsets = self._grid(documents.embeddings), documents.offsets
        self._labels = np.array([str(label) for label in private[corpus.label].to_pylist()])
        originals = means(*documents)
        self._clean: Folded = learnt_by_fold(originals, self._labels, FOLDS, SEED)

    def figures(self, quantiles: tuple[float, float], together: int, draws: int) -> Iterator[str]:
        """Yield macro-F1 learnt from released rows and from originals, for each epsilon."""
        low, high = np.quantile(self._cosines, quantiles)
        similarities = Similarities(self._own, float(low), float(high))
        utilities = similarities.utilities(self._sentences, self._offsets)
        for epsilon in EPSILONS:
            law = DeepCandidate(Fraction(epsilon, together), Utility.SIMILARITY, 1)
            found = []
            for _ in range(draws):
                rows = np.mean([self._drawn(law, utilities) for _ in range(together)], axis=0)
                learnt = out_of_fold(rows, self._labels, FOLDS, SEED), told(self._clean, rows)
                found.append([scores(self._labels, predicted).f1 for predicted in learnt])
            yield " / ".join(cell(np.array(column)) for column in zip(*found, strict=True))

    def _drawn(
        self, law: DeepCandidate, utilities: npt.NDArray[np.int32]
    ) -> npt.NDArray[np.float64]:
        """Draw a candidate for each document under a fresh key; return their embeddings (n, d)."""
        stream = ReleaseKey.fresh().stage("similarity", 1, **law.stage_parameters)
        count = len(utilities)
        addresses = stream.addresses("rows", range(count), [b""] * count)
        drawn = law.sampler.draw(utilities, stream, addresses)
        return self._candidates.embeddings[drawn].astype(np.float64)

    def _grid(self, vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        return on_grid(vectors - self._candidates.centre)


def encoded(encoder: Encoder, texts: pa.ChunkedArray, most: int) -> Encoded:
    """Split texts and encode the first sentences of each."""
    found = split(texts.to_pylist(), most, "en")
    starts = range(0, len(found.texts), AT_ONCE)
    parts = [encoder.encode(found.texts[start : start + AT_ONCE]) for start in starts]
    return Encoded(np.concatenate(parts), found.offsets)


def cell(values: npt.NDArray[np.float64]) -> str:
    """Format a mean over draws, with half of its interval."""
    low, high = over_draws(values, CONFIDENCE)
    return f"{values.mean():.3f} ± {(high - low) / 2:.3f}"


def main() -> None:
    """Print both tables in Markdown, for each corpus."""
    for name, corpus, folder, draws in prepared(str(__doc__)):
        lab = Lab(corpus, folder)
        shown = [
            ("quantiles", {f"{low}, {high}": ((low, high), 1) for low in LOWS for high in HIGHS}),
            ("draws", {f"{count}": (BUILT, count) for count in DRAWS_OF_A_ROW}),
        ]
        for title, rows in shown:
            print(f"\n| {name}: {title} | {' | '.join(map(str, EPSILONS))} |")
            print("|---" * (len(EPSILONS) + 1) + "|")
            for row, setting in rows.items():
                print(f"| {row} | {' | '.join(lab.figures(*setting, draws))} |", flush=True)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
