"""The vocabulary of a release: read from a public list, or selected privately from the corpus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import apache_beam as beam
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from indexes.tokenizer import tokenize
from indexes.vocabulary import Vocabulary, VocabularyError, document_frequencies
from mechanisms.histogram import Counts, ThresholdedVocabulary
from mechanisms.keystream import Keystream, ReleaseKey
from transforms.artefacts import Artefact
from transforms.documents import Corpus, Split
from transforms.errors import InputError, redacted
from transforms.metrics import Progress
from transforms.parquet_files import table_in
from transforms.sources import read

KeySource = Callable[[], ReleaseKey]
"""Fetches the release key inside a worker; it is never part of a pipeline."""


def load(artefact: Artefact) -> Vocabulary:
    """Read a public vocabulary: Parquet with a `term` column, or text with a term a line."""
    try:
        content = artefact.content()
        if artefact.uri.lower().endswith(".parquet"):
            table = table_in(content, ["term"])
            terms = table["term"].to_pylist()
        else:
            terms = content.decode("utf-8-sig").splitlines()
    except InputError:
        raise
    except Exception:  # object stores' clients have exceptions of their own, and so has Parquet
        raise InputError(
            f"{artefact.key}: {artefact.uri} cannot be read; give UTF-8 text with a term a "
            "line, or Parquet with a column `term`"
        ) from None
    if not all(isinstance(term, str) for term in terms):
        raise InputError(f"{artefact.key}: {artefact.uri} holds terms that are not strings")
    try:
        return Vocabulary(terms)
    except VocabularyError as error:
        raise InputError(f"{artefact.key}: {artefact.uri} {error}") from None


class SelectVocabulary(beam.PTransform):
    """Splits in, one `Vocabulary` out: the terms whose noisy document frequency is high enough."""

    def __init__(self, corpus: Corpus, selection: ThresholdedVocabulary, key: KeySource) -> None:
        super().__init__()
        self._corpus = corpus
        self._selection = selection
        self._key = key

    def expand(self, splits: beam.PCollection[Split]) -> beam.PCollection[Vocabulary]:
        frequencies = (
            splits
            | "document frequencies" >> beam.ParDo(_CountDocuments(self._corpus, self._key))
            | "over the corpus" >> beam.CombinePerKey(sum)
        )
        return thresholded(frequencies, self._selection, self._key)


class Selection(Protocol):
    """A mechanism that selects terms by noisy sums.

    Attributes:
        threshold: what a noisy sum must reach.
    """

    @property
    def threshold(self) -> int: ...

    def select(
        self, terms: Sequence[bytes], sums: Sequence[int], stream: Keystream
    ) -> npt.NDArray[np.bool_]:
        """Which of the terms, of non-zero sums, are released: bool (n,)."""


def thresholded(
    sums: beam.PCollection[tuple[str, int]],
    selection: Selection,
    key: KeySource,
    parameters: object = None,
) -> beam.PCollection[Vocabulary]:
    """One `Vocabulary`: the terms whose noisy sum is high enough.

    `parameters` are what the sums depend on besides the corpus and the selection, if anything.
    """
    return (
        sums
        | "batch" >> beam.BatchElements(min_batch_size=256, max_batch_size=1 << 16)
        | "threshold" >> beam.ParDo(_Threshold(selection, key, parameters))
        | "gather" >> beam.CombineGlobally(beam.combiners.ToListCombineFn())
        | "number" >> beam.ParDo(_Number(selection.threshold))
    )


class _CountDocuments(beam.DoFn):
    """(term, number of documents with it) for one split."""

    def __init__(self, corpus: Corpus, key: KeySource) -> None:
        self._corpus = corpus
        self._key = key
        self._progress = Progress("vocabulary")

    def setup(self) -> None:
        self._key()  # which refuses a worker whose code counts in another way

    @redacted
    def process(self, split: Split) -> Iterator[tuple[str, int]]:
        totals: Counter[str] = Counter()
        for documents in read(split, self._corpus):
            tokens = tokenize(documents.texts)
            terms, counts = document_frequencies(tokens)
            totals.update(dict(zip(terms.to_pylist(), counts.tolist(), strict=True)))
            self._progress.count(documents, len(tokens.starts))
        yield from totals.items()


class _Threshold(beam.DoFn):
    """The terms of a batch that are released."""

    def __init__(self, selection: Selection, key: KeySource, parameters: object) -> None:
        self._selection = selection
        self._key = key
        self._parameters = parameters

    def setup(self) -> None:
        whole = repr(self._selection) + ("" if self._parameters is None else repr(self._parameters))
        self._stream: Keystream = self._key().stage("vocabulary", whole.encode())

    @redacted
    def process(self, batch: list[tuple[str, int]]) -> Iterator[str]:
        terms = [term.encode() for term, _ in batch]
        chosen = self._selection.select(terms, [count for _, count in batch], self._stream)
        yield from (batch[i][0] for i in chosen.nonzero()[0])


class _Number(beam.DoFn):
    """Terms get their numbers in alphabetical order, which tells nothing of their counts."""

    def __init__(self, threshold: int) -> None:
        self._threshold = threshold

    @redacted
    def process(self, terms: list[str]) -> Iterator[Vocabulary]:
        if not terms:
            raise InputError(
                "mechanism.vocabulary.private: no term's noisy frequency reaches the threshold of "
                f"{self._threshold}; raise epsilon or delta, or give a public list"
            )
        yield Vocabulary(sorted(terms))


def vocabulary_table(vocabulary: Vocabulary, weights: Counts | None) -> pa.Table:
    """The table of `vocabulary.parquet`; `weights` are the noisy counts, or None."""
    return pa.table(
        {
            "term_id": pa.array(range(len(vocabulary)), pa.int32()),
            "term": vocabulary.terms.cast(pa.string()),
            "weight": pa.array(
                [None] * len(vocabulary) if weights is None else weights, pa.int64()
            ),
        }
    )
