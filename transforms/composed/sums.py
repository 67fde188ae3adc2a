"""Sums over rows: the corpus's histogram and its vocabulary, with noise that is bound to the rows.

A release of files has a key that is bound to their places and states, and adds noise once all their
parts are there. Rows have neither places nor parts. So every partial sum carries a digest of the
documents in it, which binds the noise to them, and a digest of their ids, which shows whether each
document is in the sum exactly once.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

import apache_beam as beam
import numpy as np
import numpy.typing as npt
from apache_beam.transforms.window import GlobalWindows

from quietcorpus.indexes.tokens.tokenizers import Tokenizer
from quietcorpus.indexes.tokens.vocabulary import Vocabulary
from quietcorpus.mechanisms.bags.histogram import Counts, Histogram, ThresholdedVocabulary
from quietcorpus.mechanisms.encoding import Value
from quietcorpus.mechanisms.keystream import ReleaseKey

from ..errors import redacted, redacted_call
from ..histogram import count_terms, release_histogram
from ..metrics import Progress
from ..reading.documents import Documents
from ..reading.identifiers import Covered
from ..sums import BUCKETS, buckets_of, doubled, require_all
from ..vocabulary import (
    KeySource,
    Selection,
    count_documents,
    number_terms,
    select_terms,
    selection_stream,
)

_IDS = slice(0, 3)
_CONTENT = slice(3, 5)

Coverage = npt.NDArray[np.uint64]
"""The documents in a sum, uint64 (5,): `Covered`, and the sum of keyed digests of id and text."""

Sum = TypeVar("Sum")
Part = tuple[Sum, Coverage]
"""An exact sum over some documents, and which they are."""


def coverages(
    documents: Documents, column: str, key: ReleaseKey, others: Iterable[bytes]
) -> Coverage:
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


def coverage(documents: Documents, column: str, key: ReleaseKey) -> Coverage:
    """Return what a batch adds to the coverage of a sum."""
    assert documents.ids is not None
    nothing = [b""] * len(documents.ids)
    found: Coverage = coverages(documents, column, key, nothing).sum(axis=0, dtype=np.uint64)
    return found


class AddParts(beam.CombineFn):
    """A combiner that adds partial sums, and what they cover; of nothing, the sum is None."""

    def create_accumulator(self) -> Part[Any]:
        return None, np.zeros(5, np.uint64)

    @redacted_call
    def add_input(self, total: Part[Any], more: Part[Any]) -> Part[Any]:
        return added(total[0], more[0]), total[1] + more[1]

    @redacted_call
    def merge_accumulators(self, totals: Iterable[Part[Any]]) -> Part[Any]:
        merged = self.create_accumulator()
        for total in totals:
            merged = self.add_input(merged, total)
        return merged

    @redacted_call
    def extract_output(self, total: Part[Any]) -> Part[Any]:
        return total


def added(total: Any, own: Any) -> Any:
    """Add two arrays, or a mapping's counts to another's; None means no sum yet."""
    if own is None:
        return total
    if not isinstance(own, dict):
        return own if total is None else total + own
    if total is None:
        return dict(own)  # whose owner may use it again
    for term, count in own.items():
        total[term] = total.get(term, 0) + count
    return total


def require_covered(held: Coverage, identified: Iterable[Covered]) -> None:
    """Raise StageError unless a sum covers every document exactly once."""
    whole = sum(identified, start=np.zeros(3, np.uint64))
    if not np.array_equal(held[_IDS], whole):
        raise doubled("a part of the corpus, or lost one")


class _Bundles:
    """The part of a DoFn that adds up a bundle's documents, and gives their sum at its end."""

    stage: str

    def __init__(self, column: str, key: KeySource) -> None:
        self._column = column
        self._key = key
        self._progress = Progress(self.stage)

    def start_bundle(self) -> None:
        self._release_key = self._key()
        self._sum: Any = None
        self._coverage = np.zeros(5, np.uint64)

    def _add(self, documents: Documents, own: Any, tokens: int) -> None:
        self._sum = added(self._sum, own)
        self._coverage = self._coverage + coverage(documents, self._column, self._release_key)
        self._progress.count(documents, tokens)

    @redacted
    def finish_bundle(self) -> Iterator[Any]:
        for part in self._parts() if self._sum is not None else ():
            yield GlobalWindows.windowed_value(part)

    def _parts(self) -> Iterator[Any]:
        yield self._sum, self._coverage
        self._sum = None


class _CountTerms(_Bundles, beam.DoFn):
    """A DoFn that counts terms exactly; the counts stay inside the pipeline."""

    stage = "histogram"

    @redacted
    def process(self, documents: Documents, vocabulary: Vocabulary) -> Iterator[Any]:
        self._add(documents, *count_terms(documents, vocabulary))
        yield from ()


class _CountDocuments(_Bundles, beam.DoFn):
    """A DoFn that counts, for each term, the documents with it, in buckets."""

    stage = "vocabulary"

    def __init__(self, column: str, key: KeySource, tokenizer: Tokenizer) -> None:
        super().__init__(column, key)
        self._tokenizer = tokenizer

    @redacted
    def process(self, documents: Documents) -> Iterator[Any]:
        frequencies, tokens = count_documents(documents, self._tokenizer)
        self._add(documents, frequencies, tokens)
        yield from ()

    def _parts(self) -> Iterator[Any]:
        yield from by_bucket(self._sum, self._coverage)
        self._sum = None


def by_bucket(
    sums: Mapping[str, int], held: Coverage
) -> Iterator[tuple[int, Part[dict[str, int]]]]:
    """Divide sums by term into all buckets, each of which then covers the same documents."""
    for number, own in enumerate(buckets_of(sums)):
        yield number, (own, held)


class SumHistogram(beam.PTransform):
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
        self._count = _CountTerms(column, key)
        self._noise = _AddNoise(mechanism, key)
        self._identified = identified

    def expand(self, documents: beam.PCollection[Documents]) -> beam.PCollection[Counts]:
        return (
            documents
            | "count" >> beam.ParDo(self._count, self._vocabulary)
            | "over the corpus" >> beam.CombineGlobally(AddParts())
            | "noise"
            >> beam.ParDo(self._noise, self._vocabulary, beam.pvalue.AsIter(self._identified))
        )


class _AddNoise(beam.DoFn):
    def __init__(self, mechanism: Histogram, key: KeySource) -> None:
        self._mechanism = mechanism
        self._key = key

    def start_bundle(self) -> None:
        self._release_key = self._key()

    @redacted
    def process(
        self, total: Part[Counts | None], vocabulary: Vocabulary, identified: Iterable[Covered]
    ) -> Iterator[Counts]:
        counts, held = total
        require_covered(held, identified)
        exact = np.zeros(len(vocabulary), np.int64) if counts is None else counts
        key = self._release_key.bound(held[_CONTENT].tobytes())
        yield release_histogram(self._mechanism, exact, vocabulary, key)


class SumVocabulary(beam.PTransform):
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
        """Configure as `SumHistogram`; `named` begins the error for an empty selection."""
        super().__init__()
        self._count = _CountDocuments(column, key, tokenizer)
        self._threshold = ThresholdParts(selection, key, identified, named, tokenizer)

    def expand(self, documents: beam.PCollection[Documents]) -> beam.PCollection[Vocabulary]:
        return documents | "document frequencies" >> beam.ParDo(self._count) | self._threshold


class ThresholdParts(beam.PTransform):
    """A PTransform from (bucket, part) pairs to one `Vocabulary`; parts are of sums by term."""

    def __init__(
        self,
        selection: Selection,
        key: KeySource,
        identified: beam.PCollection[Covered],
        named: str,
        tokenizer: Tokenizer,
        **parameters: Value,
    ) -> None:
        """Configure as `SumVocabulary`, for sums that depend on `parameters`."""
        super().__init__()
        self._select = _Select(selection, key, tokenizer, parameters)
        self._number = _Number(selection.threshold, named, tokenizer)
        self._identified = identified

    def expand(
        self, parts: beam.PCollection[tuple[int, Part[dict[str, int]]]]
    ) -> beam.PCollection[Vocabulary]:
        return (
            parts
            | "over the corpus" >> beam.CombinePerKey(AddParts())
            | "threshold" >> beam.ParDo(self._select, beam.pvalue.AsIter(self._identified))
            | "gather" >> beam.CombineGlobally(beam.combiners.ToListCombineFn())
            | "number" >> beam.ParDo(self._number)
        )


class _Select(beam.DoFn):
    """A DoFn that selects a bucket's released terms, once every document is in it."""

    def __init__(
        self,
        selection: Selection,
        key: KeySource,
        tokenizer: Tokenizer,
        parameters: Mapping[str, Value],
    ) -> None:
        self._selection = selection
        self._key = key
        self._tokenizer = tokenizer
        self._parameters = parameters

    def start_bundle(self) -> None:
        self._release_key = self._key()

    @redacted
    def process(
        self, bucket: tuple[int, Part[dict[str, int]]], identified: Iterable[Covered]
    ) -> Iterator[tuple[int, list[str]]]:
        number, (sums, held) = bucket
        require_covered(held, identified)
        key = self._release_key.bound(held[_CONTENT].tobytes())
        stream = selection_stream(self._selection, key, self._parameters, self._tokenizer)
        yield number, select_terms(self._selection, sums, stream)


class _Number(beam.DoFn):
    """A DoFn that numbers terms alphabetically, which reveals nothing of their counts."""

    def __init__(self, threshold: int, named: str, tokenizer: Tokenizer) -> None:
        self._threshold = threshold
        self._named = named
        self._tokenizer = tokenizer

    @redacted
    def process(self, buckets: list[tuple[int, list[str]]]) -> Iterator[Vocabulary]:
        if buckets:  # there are none without documents
            require_all(tuple(number for number, _ in buckets), BUCKETS)
        terms = (term for _, own in buckets for term in own)
        yield number_terms(terms, self._threshold, self._tokenizer, self._named)
