"""The corpus's term counts, released under the histogram mechanism."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import apache_beam as beam
import numpy as np

from indexes.tokenizer import tokenize
from indexes.vocabulary import Vocabulary
from mechanisms.histogram import Counts, Histogram
from mechanisms.keystream import ReleaseKey
from transforms.documents import Corpus, Split
from transforms.errors import redacted
from transforms.identifiers import TAG, Identifiers
from transforms.metrics import Progress
from transforms.shards import TALLIES, RejectLog, Seen
from transforms.sources import read
from transforms.vocabulary import KeySource

_NOWHERE = RejectLog()


class ReleaseHistogram(beam.PTransform):
    """Splits in; out, tagged, `weights` (one int64 array), `tallies`, `identifiers`."""

    def __init__(
        self,
        corpus: Corpus,
        vocabulary: beam.pvalue.AsSingleton,
        mechanism: Histogram,
        key: KeySource,
        rejects: RejectLog = _NOWHERE,
        unique: str | None = None,
    ) -> None:
        """`rejects` and `unique` (the id column to check) are for a job with no later pass."""
        super().__init__()
        self._unique = unique
        self._corpus = corpus
        self._rejects = rejects
        self._vocabulary = vocabulary
        self._mechanism = mechanism
        self._key = key

    def expand(self, splits: beam.PCollection[Split]) -> dict[str, beam.PCollection]:
        counted = splits | "count" >> beam.ParDo(
            _CountTerms(self._corpus, self._key, self._rejects, self._unique), self._vocabulary
        ).with_outputs(TALLIES, TAG, main="counts")
        weights = (
            counted.counts
            | "over the corpus" >> beam.CombineGlobally(_sum).without_defaults()
            | "noise" >> beam.ParDo(_AddNoise(self._mechanism, self._key), self._vocabulary)
        )
        return {"weights": weights, TALLIES: counted[TALLIES], TAG: counted[TAG]}


def _sum(parts: Iterable[Counts]) -> Counts:
    return sum(parts, start=np.zeros((), dtype=np.int64))


class _CountTerms(beam.DoFn):
    """The exact counts of one split's terms; they stay inside the pipeline."""

    def __init__(
        self, corpus: Corpus, key: KeySource, rejects: RejectLog, unique: str | None
    ) -> None:
        self._corpus = corpus
        self._unique = unique
        self._key = key
        self._rejects = rejects
        self._progress = Progress("histogram")

    @redacted
    def process(self, split: Split, vocabulary: Vocabulary) -> Iterator[object]:
        counts = np.zeros(len(vocabulary), dtype=np.int64)
        seen = Seen(Identifiers(self._unique, self._key()))
        for documents in read(split, self._corpus):
            tokens = tokenize(documents.texts)
            _, terms = vocabulary.look_up(tokens)
            counts += np.bincount(terms, minlength=len(vocabulary))
            self._progress.count(documents, len(tokens.starts))
            seen.add(documents)
        self._rejects.write(seen.rejects, split.name)
        yield counts
        yield from seen.outputs()


class _AddNoise(beam.DoFn):
    def __init__(self, mechanism: Histogram, key: KeySource) -> None:
        self._mechanism = mechanism
        self._key = key

    def setup(self) -> None:
        self._release_key: ReleaseKey = self._key()

    @redacted
    def process(self, counts: Counts, vocabulary: Vocabulary) -> Iterator[Counts]:
        yield release_histogram(self._mechanism, counts, vocabulary, self._release_key)


def release_histogram(
    mechanism: Histogram, counts: Counts, vocabulary: Vocabulary, key: ReleaseKey
) -> Counts:
    """The noisy counts of a vocabulary's terms, from the corpus's own."""
    stream = key.stage("histogram", repr((mechanism, vocabulary.digest)).encode())
    return mechanism.release(counts, stream)
