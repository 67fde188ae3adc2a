"""Arrays of counts, added up over a corpus before noise, each with the parts that it holds."""

from __future__ import annotations

from collections.abc import Iterable

import apache_beam as beam
import numpy as np
import numpy.typing as npt

from .parts import Parts, joined

Counts = npt.NDArray[np.int64]

PartialSum = tuple[Counts, Parts]
"""Exact counts, and the numbers of the splits whose texts they cover."""


_Total = tuple[Counts, list[int]]


class AddCounts(beam.CombineFn):
    """A combiner that adds counts; raises StageError if a split occurs twice."""

    def create_accumulator(self) -> _Total:
        # Without dimensions: the counts' shape is unknown here, and broadcasting adds it.
        return np.zeros((), dtype=np.int64), []

    def add_input(self, total: _Total, more: PartialSum) -> _Total:
        total[1].extend(more[1])
        return total[0] + more[0], total[1]

    def merge_accumulators(self, totals: Iterable[_Total]) -> _Total:
        merged = self.create_accumulator()
        for counts, parts in totals:
            merged = self.add_input(merged, (counts, tuple(parts)))
        return merged

    def extract_output(self, total: _Total) -> PartialSum:
        return total[0], joined([tuple(total[1])])
