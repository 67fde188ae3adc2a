"""Sums over rows, the corpus's histogram and its vocabulary, whose noise is bound to the rows."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import apache_beam as beam
import numpy as np
from apache_beam.transforms.window import GlobalWindows

from quietcorpus.indexes.tokens.tokenizers import Tokenizer
from quietcorpus.indexes.tokens.vocabulary import Vocabulary
from quietcorpus.mechanisms.bags.histogram import Counts, Histogram, ThresholdedVocabulary
from quietcorpus.mechanisms.keystream import ReleaseKey

from ..errors import redacted
from ..histogram import NoisyHistogram, count_terms
from ..metrics import Progress
from ..reading.documents import Documents
from ..reading.identifiers import Covered
from ..sums import Digests, OfRows, added, bucketed
from ..vocabulary import KeySource, Threshold, count_documents


def coverages(
    documents: Documents, column: str, key: ReleaseKey, others: Iterable[bytes]
) -> Digests:
    """Return what each document of a batch adds to the coverage of a sum, uint64 (n, 5).

    `column` is the field of the ids, and `others` has what the sum reads of each document beside
    its text: two states of a corpus that differ there alone have independent noise, too.
    """
    assert documents.ids is not None
    size = len(documents.ids)
    ids = key.identifying(column).addresses("", [0] * size, documents.ids)
    _, bounds, raw = documents.texts.buffers()
    view = memoryview(raw) if raw is not None else memoryview(b"")
    offset = documents.texts.offset
    ends = np.frombuffer(bounds, np.int64)[offset : offset + size + 1].tolist()
    contents = (
        len(own).to_bytes(8, "little") + own + other + bytes(view[a:b])
        for own, other, (a, b) in zip(documents.ids, others, itertools.pairwise(ends), strict=True)
    )
    digests = key.stage("rows", 1).addresses("", [0] * size, contents)
    return np.column_stack([np.ones(size, np.uint64), ids, digests])


def coverage(documents: Documents, column: str, key: ReleaseKey) -> Digests:
    """Return what a batch adds to the coverage of a sum."""
    assert documents.ids is not None
    nothing = [b""] * len(documents.ids)
    found: Digests = coverages(documents, column, key, nothing).sum(axis=0, dtype=np.uint64)
    return found


def _whole(sums: Any, held: Digests) -> Iterator[Any]:
    yield sums, held


class CountRows(beam.DoFn):
    """A DoFn that adds up what a function counts in a bundle's documents; the sums stay inside.

    The function returns a batch's sum and its number of tokens. The sum of the bundle comes at its
    end, whole or divided by another function.
    """

    def __init__(
        self,
        stage: str,
        column: str,
        key: KeySource,
        count: Callable[..., tuple[Any, int]],
        divide: Callable[[Any, Digests], Iterator[Any]] = _whole,
    ) -> None:
        self._column = column
        self._key = key
        self._count = count
        self._divide = divide
        self._progress = Progress(stage)

    def start_bundle(self) -> None:
        self._release_key = self._key()
        self._sum: Any = None
        self._coverage = np.zeros(5, np.uint64)

    @redacted
    def process(self, documents: Documents, *sides: Any) -> Iterator[Any]:
        own, tokens = self._count(documents, *sides)
        self._sum = added(self._sum, own)
        self._coverage = self._coverage + coverage(documents, self._column, self._release_key)
        self._progress.count(documents, tokens)
        yield from ()

    @redacted
    def finish_bundle(self) -> Iterator[Any]:
        for part in self._divide(self._sum, self._coverage) if self._sum is not None else ():
            yield GlobalWindows.windowed_value(part)
        self._sum = None


class HistogramOfRows(beam.PTransform):
    """A PTransform from documents to one array of noisy counts, int64 (V,).

    Without any document, the counts are noise alone.
    """

    def __init__(
        self,
        mechanism: Histogram,
        vocabulary: beam.pvalue.AsSingleton,
        column: str,
        key: KeySource,
        identified: beam.PCollection[Covered],
    ) -> None:
        """Configure for ids of a field, all of which are `identified` as unique."""
        super().__init__()
        self._vocabulary = vocabulary
        self._count = CountRows("histogram", column, key, count_terms)
        known = beam.pvalue.AsIter(identified)
        self._noise = NoisyHistogram(mechanism, vocabulary, key, OfRows(), known)

    def expand(self, documents: beam.PCollection[Documents]) -> beam.PCollection[Counts]:
        return documents | "count" >> beam.ParDo(self._count, self._vocabulary) | self._noise


class VocabularyOfRows(beam.PTransform):
    """A PTransform from documents to one `Vocabulary`, of the terms that many documents have."""

    def __init__(
        self,
        selection: ThresholdedVocabulary,
        column: str,
        key: KeySource,
        identified: beam.PCollection[Covered],
        named: str,
        tokenizer: Tokenizer,
    ) -> None:
        """Configure as `HistogramOfRows`; `named` begins the error for an empty selection."""
        super().__init__()
        count = partial(count_documents, tokenizer=tokenizer)
        self._count = CountRows("vocabulary", column, key, count, bucketed)
        known = beam.pvalue.AsIter(identified)
        self._threshold = Threshold(selection, key, {}, OfRows(), tokenizer, known, named)

    def expand(self, documents: beam.PCollection[Documents]) -> beam.PCollection[Vocabulary]:
        return documents | "document frequencies" >> beam.ParDo(self._count) | self._threshold
