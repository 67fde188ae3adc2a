"""Sums over a corpus: what adds them up leaves its inputs as they are."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from quietcorpus.transforms.sums import AddSums, OfParts, OfRows


def part(own: Any) -> Any:
    return own, np.arange(5, dtype=np.uint64)


@pytest.mark.parametrize(
    ("adds", "inputs"),
    [
        (AddSums(OfRows()), [part({"a": 1, "b": 2}), part({"b": 3}), part(None)]),
        (AddSums(OfRows()), [part(np.arange(3)), part(None), part(np.arange(3))]),
        (AddSums(OfParts(3)), [({"a": 1}, (0,)), ({"a": 2}, (1,)), ({}, (2,))]),
        (AddSums(OfParts(2)), [(np.arange(3), (0,)), (np.arange(3), (1,))]),
    ],
    ids=["terms of rows", "counts of rows", "terms of files", "counts of files"],
)
def test_inputs_are_left_as_they_are(adds: AddSums, inputs: list[Any]) -> None:
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
