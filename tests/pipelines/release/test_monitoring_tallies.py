"""Every pass over a corpus has read every split of the plan, once, or nothing is published."""

from __future__ import annotations

import io
from contextlib import nullcontext
from functools import reduce
from operator import add
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from golden_releases import fixed, publish

from quietcorpus.pipelines.card import page
from quietcorpus.pipelines.release import run
from quietcorpus.pipelines.release.monitoring import (
    check_files,
    check_opens,
    check_passes,
    check_tally,
)
from quietcorpus.transforms.errors import InputError, StageError
from quietcorpus.transforms.reading.documents import Reject, Split
from quietcorpus.transforms.run_files import read_run_files
from quietcorpus.transforms.shards import Tally, Written, data_file

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


FILES = [Written(data_file(number, 3), "", "", 4) for number in range(3)]


@pytest.mark.parametrize(
    ("files", "documents", "said"),
    [
        (FILES[:2], 8, "2 files of 3 (the first lost is data/part-00002-of-00003.parquet), 8 rows"),
        ([*FILES, FILES[0]], 16, "4 files of 3, 16 rows of 16"),
        ([*FILES[:2], FILES[0]], 12, "3 files of 3 (the first lost is data/part-00002-of-00003."),
        (FILES, 13, "3 files of 3, 12 rows of 13"),
        (FILES, 11, "3 files of 3, 12 rows of 11"),
    ],
    ids=["lost", "doubled", "one for another", "a row lost", "a row doubled"],
)
def test_files_without_a_row_for_each_document_are_refused(
    files: list[Written], documents: int, said: str
) -> None:
    # Kills: a count of files alone, or of rows alone.
    check_files([*FILES, Written("vocabulary.parquet", "", "", 7)], Tally(12), 3)
    with pytest.raises(StageError) as raised:
        check_files(files, Tally(documents), 3)
    assert said in str(raised.value)


def test_a_file_that_the_engine_doubled_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Kills: a file of an earlier attempt beside the one that was made again.
    def doubled(*given: Any) -> tuple[list[Written], Tally]:
        files, tally = read_run_files(*given)
        return [*files, files[-1]], tally

    monkeypatch.setattr(run, "read_run_files", doubled)
    with fixed(tmp_path), pytest.raises(StageError, match="the engine doubled a file"):
        publish("histogram")


@pytest.mark.parametrize(
    ("documents", "rejected", "share", "refused"),
    [
        (0, 0, None, True),
        (0, 5, 1.0, True),
        (9, 0, None, False),
        (9, 1, None, True),
        (9, 1, 0.1, False),
        (8, 1, 0.1, True),
        (899, 101, 0.1, True),
        (900, 100, 0.1, False),
    ],
)
def test_as_many_unreadable_records_as_are_tolerated(
    documents: int, rejected: int, share: float | None, refused: bool
) -> None:
    # Kills: a share of documents, not of all records; `>=` for `>`, and one record more.
    rejects = None if share is None else SimpleNamespace(max_share=share)
    spec: Any = SimpleNamespace(rejects=rejects, input=SimpleNamespace(path="corpus"))
    tally = Tally(documents, rejected, Reject("corpus", 3, "no text") if rejected else None)
    with pytest.raises(InputError, match=r"^input\.path: ") if refused else nullcontext():
        check_tally(tally, spec)


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
    monkeypatch.setattr("quietcorpus.pipelines.release.monitoring.LARGEST", 10)
    assert page.within(10, [b"12345", b"67890"]) == b"1234567890"
    opens(data__part=UNREADABLE["not UTF-8"])
