"""The study of a histogram of terms."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from quietcorpus.evaluation.results import Observation
from quietcorpus.indexes.vocabulary import Vocabulary
from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.pipelines.evaluate.draws import Draw
from quietcorpus.pipelines.evaluate.study import Studied, Study, tokenizer_of_card
from quietcorpus.pipelines.kinds.histogram import HistogramKind
from quietcorpus.pipelines.kinds.prepare import prepare
from quietcorpus.pipelines.spec.spec import Spec
from quietcorpus.pipelines.storage import files as storage
from quietcorpus.pipelines.storage.layout import VOCABULARY
from quietcorpus.transforms.histogram import release_histogram

_TOP = 100


class HistogramStudy(Study):
    """The study of the terms' counts, before and after the release.

    A redraw keeps the released vocabulary.
    """

    swept = frozenset({"precision", "epsilon"})
    of_documents = False

    def __init__(self, studied: Studied) -> None:
        table = storage.read_table(f"{studied.release}/{VOCABULARY}")
        self._vocabulary = Vocabulary(
            table["term"].to_pylist(), tokenizer_of_card(studied.card.mechanism)
        )
        self._exact = studied.sample.counts_of_all(self._vocabulary)
        self.own = Draw(table.select(["weight"]), placed=True, labels=None)
        self.notes = [
            "A histogram is of no document alone: there are no attacks on documents. Counts are of "
            "the whole corpus, and fresh draws take the vocabulary as it was released."
        ]

    def redraw(self, spec: Spec) -> Draw:
        """Draw fresh noise for every count."""
        kind = prepare(spec)
        assert isinstance(kind, HistogramKind)
        noisy = release_histogram(kind.histogram, self._exact, self._vocabulary, ReleaseKey.fresh())
        return Draw(pa.table({"weight": noisy}), placed=True, labels=None)

    def observe(self, draw: Draw, number: int) -> Iterator[Observation]:
        """Yield the measures of a draw."""
        total = self._exact.sum()
        if not total:
            return
        noisy = draw.rows["weight"].to_numpy()
        error = float(np.abs(noisy - self._exact).sum() / total)
        yield Observation("histogram-error", "release", error)
        count = min(_TOP, len(noisy))
        tops = (set(np.argsort(-c, kind="stable")[:count].tolist()) for c in (noisy, self._exact))
        yield Observation("histogram-top", "release", len(set.intersection(*tops)) / count)
