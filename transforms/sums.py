"""Sums over a corpus before noise, each with the parts that it holds.

The parts of a corpus that a sum holds: each must be in it exactly once.

A part that an engine delivers twice doubles what each of its documents adds to a sum, and with it
the sensitivity for which noise was calibrated. So every partial sum carries the numbers of the
parts that it holds, up to the point where noise is added.

Arrays of counts, added up over a corpus before noise, each with the parts that it holds.

Sums by term over a corpus, before noise: in buckets, each with the parts that it holds.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping

import apache_beam as beam
import numpy as np
import numpy.typing as npt

from .errors import StageError, redacted_call

Parts = tuple[int, ...]
"""The numbers of the parts (splits of the corpus, or shards of users) that a sum holds."""


def joined(held: Iterable[Parts]) -> Parts:
    """Join the parts of several sums; raises StageError if a part occurs twice."""
    parts = tuple(part for own in held for part in own)
    if len(set(parts)) < len(parts):
        raise doubled("a part")
    return parts


def require_all(parts: Parts, count: int, name: Callable[[int], str] = "number {}".format) -> None:
    """Raise StageError unless these are the parts 0 .. count - 1, each once; `name` names one."""
    joined([parts])
    if sorted(parts) != list(range(count)):
        lost = sorted(set(range(count)) - set(parts))
        first = "" if not lost else f" (the first lost is {name(lost[0])})"
        raise StageError(
            f"the engine lost a part: {count - len(lost)} of {count} are there{first}; run again, "
            "on another engine if that repeats"
        )


def doubled(what: str) -> StageError:
    """Return the error for a run in which the engine delivered something twice."""
    return StageError(f"the engine doubled {what}; run again, on another engine if that repeats")


Counts = npt.NDArray[np.int64]

PartialSum = tuple[Counts, Parts]
"""Exact counts, and the numbers of the splits whose texts they cover."""


_Total = tuple[Counts, list[int]]


class AddCounts(beam.CombineFn):
    """A combiner that adds counts; raises StageError if a split occurs twice."""

    def create_accumulator(self) -> _Total:
        # Without dimensions: the counts' shape is unknown here, and broadcasting adds it.
        return np.zeros((), dtype=np.int64), []

    @redacted_call
    def add_input(self, total: _Total, more: PartialSum) -> _Total:
        total[1].extend(more[1])
        return total[0] + more[0], total[1]

    @redacted_call
    def merge_accumulators(self, totals: Iterable[_Total]) -> _Total:
        merged = self.create_accumulator()
        for counts, parts in totals:
            merged = self.add_input(merged, (counts, tuple(parts)))
        return merged

    @redacted_call
    def extract_output(self, total: _Total) -> PartialSum:
        return total[0], joined([tuple(total[1])])


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


_TermTotal = tuple[dict[str, int], list[int]]


class AddTermSums(beam.CombineFn):
    """A combiner that adds the sums of a bucket; raises StageError if a part occurs twice."""

    def create_accumulator(self) -> _TermTotal:
        return {}, []

    @redacted_call
    def add_input(self, total: _TermTotal, more: TermSums) -> _TermTotal:
        terms, parts = total
        for term, own in more[0].items():
            terms[term] = terms.get(term, 0) + own
        parts.extend(more[1])
        return total

    @redacted_call
    def merge_accumulators(self, totals: Iterable[_TermTotal]) -> _TermTotal:
        merged = self.create_accumulator()
        for terms, parts in totals:
            self.add_input(merged, (terms, tuple(parts)))
        return merged

    @redacted_call
    def extract_output(self, total: _TermTotal) -> TermSums:
        terms, parts = total
        return terms, joined([tuple(parts)])
