"""Every pass over a corpus has read every split of the plan, once, or nothing is published."""

from __future__ import annotations

import io
from functools import reduce
from operator import add

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from quietcorpus.pipelines.card import page
from quietcorpus.pipelines.release.watching import check_opens, check_passes
from quietcorpus.transforms.errors import StageError
from quietcorpus.transforms.reading.documents import Split
from quietcorpus.transforms.shards import Tally, Written

SPLITS = [Split("file", "parquet", number, number=number) for number in range(3)]


def read(name: str, *numbers: int) -> Tally:
    return reduce(add, (Tally.of_pass(name, SPLITS[number]) for number in numbers), Tally())


def test_whole_passes() -> None:
    whole = read("vocabulary", 2, 0, 1) + read("release", 0, 1, 2)
    check_passes(whole, 2, SPLITS)
    assert (Tally(5, 1) + whole).of_parts_alone() == whole


@pytest.mark.parametrize(
    ("tally", "said"),
    [
        (
            read("vocabulary", 0, 1, 2) + read("release", 0, 2),
            r"lost a part: 2 of 3 are there \(the first lost is number 1, of file\); run again",
        ),
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
        check_passes(tally, 2, SPLITS)


def parquet(column: pa.Array) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"x": column}), sink)
    return sink.getvalue()


WHOLE = parquet(pa.array(["a", "b"]))
UNREADABLE = {
    "a null in place of a list": parquet(pa.array([[1, 2], None], pa.list_(pa.int8(), 2))),
    "not UTF-8": parquet(pa.ListArray.from_arrays([0, 1], pa.array([b"\xff"]).view(pa.string()))),
    "cut": WHOLE[:-1],
}


def opens(**contents: bytes) -> None:
    named = {path.replace("__", "/") + ".parquet": one for path, one in contents.items()}
    files = [Written(path, path, "", len(one)) for path, one in named.items()]
    check_opens([*files, Written("vectors.txt", "", "", 1)], lambda file: [named[file.path]])


@pytest.mark.parametrize("content", UNREADABLE.values(), ids=UNREADABLE)
def test_a_kind_of_file_that_cannot_be_read_is_not_published(content: bytes) -> None:
    # Kills: what is published and paid for, and no reader opens; a look at one kind of file alone.
    opens(data__part=WHOLE, vocabulary=WHOLE, empty=parquet(pa.array([], pa.string())))
    for others in ({}, {"data__part": WHOLE}):
        with pytest.raises(StageError, match=r"^vocabulary.parquet was written, cannot be read"):
            opens(vocabulary=content, **others)


def test_no_file_is_opened_that_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quietcorpus.pipelines.release.watching.LARGEST", 10)
    assert page.within(10, [b"12345", b"67890"]) == b"1234567890"
    opens(data__part=UNREADABLE["not UTF-8"])
