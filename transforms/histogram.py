"""The corpus's term counts, released under the histogram mechanism."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import apache_beam as beam
import numpy as np

from quietcorpus.indexes.tokens.vocabulary import Terms, Vocabulary
from quietcorpus.indexes.tokens.written_language import MOST, FrequentCounts
from quietcorpus.mechanisms.bags.histogram import Counts, Histogram
from quietcorpus.mechanisms.keystream import ReleaseKey

from .errors import redacted
from .metrics import Progress
from .reading.documents import Corpus, Documents, Split
from .reading.identifiers import TAG, Identifiers
from .shards import TALLIES, RejectLog, Seen, Tally
from .staged import KEPT_NOWHERE, KeptTerms
from .sums import AddNoise, AddSums, Coverage, Covering, OfParts
from .tokens import terms_of
from .vocabulary import KeySource

_NOWHERE = RejectLog()


class HistogramOfSplits(beam.PTransform):
    """A PTransform from splits to tagged `weights` (one int64 array), `tallies`, `identifiers`."""

    def __init__(
        self,
        corpus: Corpus,
        vocabulary: beam.pvalue.AsSingleton,
        mechanism: Histogram,
        key: KeySource,
        splits: int,
        rejects: RejectLog = _NOWHERE,
        unique: str | None = None,
        kept: KeptTerms = KEPT_NOWHERE,
    ) -> None:
        """Configure the release; noise is added once, to the sum over all `splits` splits.

        `rejects` and `unique` (the id column to check) are for a job without a later pass, and
        `kept` for one with a pass that needs the terms again.
        """
        super().__init__()
        self._kept = kept
        self._unique = unique
        self._corpus = corpus
        self._rejects = rejects
        self._vocabulary = vocabulary
        self._mechanism = mechanism
        self._key = key
        self._splits = splits

    def expand(self, splits: beam.PCollection[Split]) -> dict[str, beam.PCollection]:
        counted = splits | "count" >> beam.ParDo(
            _CountTerms(self._corpus, self._key, self._rejects, self._unique, self._kept),
            self._vocabulary,
        ).with_outputs(TALLIES, TAG, main="counts")
        weights = counted.counts | NoisyHistogram(
            self._mechanism, self._vocabulary, self._key, OfParts(self._splits)
        )
        return {"weights": weights, TALLIES: counted[TALLIES], TAG: counted[TAG]}


class NoisyHistogram(beam.PTransform):
    """A PTransform from exact counts, each with what it covers, to one array of noisy counts.

    `identified` has the documents that counts of rows must cover.
    """

    def __init__(
        self,
        mechanism: Histogram,
        vocabulary: beam.pvalue.AsSingleton,
        key: KeySource,
        coverage: Coverage,
        identified: beam.pvalue.AsIter | tuple[()] = (),
    ) -> None:
        super().__init__()
        self._sides = identified, vocabulary
        self._coverage = coverage
        self._noise = AddNoise(coverage, key, partial(_noisy, mechanism))

    def expand(self, counts: beam.PCollection[Covering[Counts]]) -> beam.PCollection[Counts]:
        return (
            counts
            | "over the corpus" >> beam.CombineGlobally(AddSums(self._coverage))
            | "noise" >> beam.ParDo(self._noise, *self._sides)
        )


def _noisy(
    mechanism: Histogram, counts: Counts | None, key: ReleaseKey, vocabulary: Vocabulary
) -> Counts:
    exact = np.zeros(len(vocabulary), np.int64) if counts is None else counts
    return release_histogram(mechanism, exact, vocabulary, key)


class _CountTerms(beam.DoFn):
    """A DoFn that counts one split's terms exactly; the counts stay inside the pipeline."""

    def __init__(
        self,
        corpus: Corpus,
        key: KeySource,
        rejects: RejectLog,
        unique: str | None,
        kept: KeptTerms,
    ) -> None:
        self._corpus = corpus
        self._kept = kept
        self._unique = unique
        self._key = key
        self._rejects = rejects
        self._progress = Progress("histogram")

    @redacted
    def process(self, split: Split, vocabulary: Vocabulary) -> Iterator[object]:
        counts = np.zeros(len(vocabulary), dtype=np.int64)
        key = self._key()
        seen = Seen(Identifiers(self._unique, key, split.number), Tally.of_pass("histogram", split))
        with self._kept.keeping(split, vocabulary, key) as keeper:
            for documents in self._progress.read(split, self._corpus):
                terms = terms_of(documents, vocabulary)
                keeper.add(documents, terms)
                tokens, own = int(terms.tokens.sum()), _counted(terms, vocabulary)
                counts += own
                self._progress.count(documents, tokens)
                seen.add(documents)
                frequent = FrequentCounts(tokens, tuple(own[:MOST].tolist()))
                seen.add_words(tokens, len(terms.numbers), frequent)
        self._rejects.write(seen.rejects, split.name)
        yield counts, (split.number,)
        yield from seen.outputs()


def count_terms(documents: Documents, vocabulary: Vocabulary) -> tuple[Counts, int]:
    """Count a batch's terms exactly; return the counts, int64 (V,), and the number of tokens."""
    terms = terms_of(documents, vocabulary)
    return _counted(terms, vocabulary), int(terms.tokens.sum())


def _counted(terms: Terms, vocabulary: Vocabulary) -> Counts:
    return np.bincount(terms.numbers, minlength=len(vocabulary))


def release_histogram(
    mechanism: Histogram, counts: Counts, vocabulary: Vocabulary, key: ReleaseKey
) -> Counts:
    """Release the noisy counts of a vocabulary's terms, from the corpus's exact ones."""
    stream = key.stage(
        "histogram",
        1,
        **mechanism.stage_parameters,
        vocabulary=vocabulary.digest,
        tokenizer=vocabulary.tokenizer.law,
    )
    return mechanism.release(counts, stream)
