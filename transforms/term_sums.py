"""Sums by term over a corpus, before noise: in buckets, each with the parts that it holds."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping

import apache_beam as beam

from .parts import Parts, joined

BUCKETS = 64
"""The number of buckets, chosen by a term's hash; every part of the corpus adds to each of them."""

TermSums = tuple[dict[str, int], Parts]
"""Exact sums by term, and the parts whose documents or users they cover."""


def bucket_of(term: str) -> int:
    """Return the number of a term's bucket."""
    return zlib.crc32(term.encode()) % BUCKETS


def bucketed(sums: Mapping[str, int], part: int) -> Iterator[tuple[int, TermSums]]:
    """Yield one part's sums as (bucket, sums) pairs, including buckets without any of its terms."""
    for number, terms in enumerate(buckets_of(sums)):
        yield number, (terms, (part,))


def buckets_of(sums: Mapping[str, int]) -> list[dict[str, int]]:
    """Divide sums by term into their buckets."""
    buckets: list[dict[str, int]] = [{} for _ in range(BUCKETS)]
    for term, own in sums.items():
        buckets[bucket_of(term)][term] = own
    return buckets


_Total = tuple[dict[str, int], list[int]]


class AddTermSums(beam.CombineFn):
    """A combiner that adds the sums of a bucket; raises StageError if a part occurs twice."""

    def create_accumulator(self) -> _Total:
        return {}, []

    def add_input(self, total: _Total, more: TermSums) -> _Total:
        terms, parts = total
        for term, own in more[0].items():
            terms[term] = terms.get(term, 0) + own
        parts.extend(more[1])
        return total

    def merge_accumulators(self, totals: Iterable[_Total]) -> _Total:
        merged = self.create_accumulator()
        for terms, parts in totals:
            self.add_input(merged, (terms, tuple(parts)))
        return merged

    def extract_output(self, total: _Total) -> TermSums:
        terms, parts = total
        return terms, joined([tuple(parts)])
