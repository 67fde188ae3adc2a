"""The study of a histogram of terms."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from indexes.tokenizer import tokenize
from indexes.vocabulary import Vocabulary
from pipelines.evidence.draws import Draw, fresh_key, table_of
from pipelines.evidence.private_corpus import Sample
from pipelines.evidence.results import Observation
from pipelines.evidence.study import Study
from pipelines.histogram import HistogramKind
from pipelines.kinds import prepare
from pipelines.spec import Spec
from pipelines.storage import VOCABULARY
from transforms.histogram import release_histogram

_TOP = 100


class HistogramStudy(Study):
    """The terms' counts, before and after.

    A redraw takes the vocabulary as it was released.
    """

    def __init__(self, output: str, sample: Sample) -> None:
        table = table_of(output, VOCABULARY)
        self._vocabulary = Vocabulary(table["term"])
        self._whole = len(sample) == sample.of
        _, terms = self._vocabulary.look_up(tokenize(sample.documents.texts))
        size = len(self._vocabulary)
        self._exact = np.bincount(terms, minlength=size).astype(np.int64)
        self.own = Draw(pa.table({"weight": table["weight"]}), placed=self._whole, labels=None)
        self.notes = ["A histogram is of no document alone: there are no attacks on documents."]
        if not self._whole:
            self.notes.append(
                "The release's own counts are of all documents, and were not compared with those "
                "of a sample; draws for the sample were."
            )

    def redraw(self, spec: Spec) -> Draw:
        """Fresh noise for every count."""
        kind = prepare(spec)
        assert isinstance(kind, HistogramKind)
        noisy = release_histogram(kind.histogram, self._exact, self._vocabulary, fresh_key())
        return Draw(pa.table({"weight": noisy}), placed=True, labels=None)

    def references(self, number: int) -> Iterator[Observation]:
        """Nothing: the exact counts have no error."""
        yield from ()

    def observe(self, draw: Draw, number: int) -> Iterator[Observation]:
        """The measures of a draw."""
        total = self._exact.sum()
        if not draw.placed or not total:
            return
        noisy = draw.rows["weight"].to_numpy()
        error = float(np.abs(noisy - self._exact).sum() / total)
        yield Observation("histogram-error", "release", error)
        count = min(_TOP, len(noisy))
        tops = (set(np.argsort(-c, kind="stable")[:count].tolist()) for c in (noisy, self._exact))
        yield Observation("histogram-top", "release", len(set.intersection(*tops)) / count)
