"""Sums over rows: what adds them up leaves its inputs as they are."""

from __future__ import annotations

import copy
from typing import Any

import apache_beam as beam
import numpy as np
import pytest

from quietcorpus.transforms.composed.sums import AddParts
from quietcorpus.transforms.sums import AddCounts, AddTermSums


def part(own: Any) -> Any:
    return own, np.arange(5, dtype=np.uint64)


@pytest.mark.parametrize(
    ("adds", "inputs"),
    [
        (AddParts(), [part({"a": 1, "b": 2}), part({"b": 3}), part(None)]),
        (AddParts(), [part(np.arange(3)), part(None), part(np.arange(3))]),
        (AddTermSums(), [({"a": 1}, (0,)), ({"a": 2}, (1,)), ({}, (2,))]),
        (AddCounts(), [(np.arange(3), (0,)), (np.arange(3), (1,))]),
    ],
    ids=["mappings", "arrays", "files' terms", "files' counts"],
)
def test_inputs_are_left_as_they_are(adds: beam.CombineFn, inputs: list[Any]) -> None:
    # Kills: a sum that is added up in its first part: an engine that gives the part again, to
    # another consumer or a repeated one, would count all parts after it twice.
    before, totals = copy.deepcopy(inputs), []
    for _ in range(2):
        total = adds.create_accumulator()
        for one in inputs:
            total = adds.add_input(total, one)
        totals.append(repr(adds.extract_output(total)))
    assert repr(inputs) == repr(before)
    assert totals[0] == totals[1]
