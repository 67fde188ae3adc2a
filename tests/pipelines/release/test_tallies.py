"""Every pass over a corpus has read every split of the plan, once, or nothing is published."""

from __future__ import annotations

from functools import reduce
from operator import add

import pytest

from quietcorpus.pipelines.release.tallies import check_passes
from quietcorpus.transforms.errors import StageError
from quietcorpus.transforms.reading.documents import Split
from quietcorpus.transforms.shards import Tally

SPLITS = [Split("file", "parquet", number, number=number) for number in range(3)]


def read(name: str, *numbers: int) -> Tally:
    return reduce(add, (Tally.of_pass(name, SPLITS[number]) for number in numbers), Tally())


def test_whole_passes() -> None:
    whole = read("vocabulary", 2, 0, 1) + read("release", 0, 1, 2)
    check_passes(whole, 2, 3)
    assert (Tally(5, 1) + whole).of_parts_alone() == whole


@pytest.mark.parametrize(
    ("tally", "said"),
    [
        (read("vocabulary", 0, 1, 2) + read("release", 0, 2), "lost a part: 2 of 3"),
        (read("vocabulary", 0, 1, 2, 1) + read("release", 0, 1, 2), "doubled a part"),
        # As many as there should be, and as many in all. Kills: a count of parts.
        (read("vocabulary", 0, 1, 1) + read("release", 0, 1, 2), "doubled a part"),
        (read("vocabulary", 0, 1, 2), "lost a pass over the corpus: 1 of 2"),
        (Tally(3), "lost a pass over the corpus: 0 of 2"),
    ],
    ids=lambda case: case if isinstance(case, str) else "",
)
def test_other_passes_are_refused(tally: Tally, said: str) -> None:
    with pytest.raises(StageError, match=said):
        check_passes(tally, 2, 3)
