"""A corpus is read as it was planned, or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from quietcorpus.transforms.errors import InputError, StageError
from quietcorpus.transforms.reading.documents import Corpus
from quietcorpus.transforms.reading.sources import batches, plan

LINES = "text of a person\n" * 5000


def appended(path: Path) -> None:
    path.write_text(path.read_text() + LINES)


def cut(path: Path) -> None:
    os.truncate(path, len(LINES) - 5)


def replaced(path: Path) -> None:
    other = path.with_name("other")
    other.write_text(LINES.swapcase())
    os.utime(other, (path.stat().st_atime, path.stat().st_mtime))
    other.replace(path)


def joined(path: Path) -> None:
    path.with_name("b.txt").write_text(LINES)


@pytest.mark.parametrize("change", [appended, cut, replaced, joined, Path.unlink])
def test_a_corpus_that_changes_while_it_is_read(tmp_path: Path, change: object) -> None:
    # Kills: figures and artefacts of a corpus that never was.
    path = tmp_path / "a.txt"
    path.write_text(LINES)
    corpus = Corpus(f"{tmp_path}/*.txt")
    assert sum(len(batch.texts) for batch in batches(corpus)) == 5000
    read = batches(corpus)
    next(read)
    assert callable(change)
    change(path)
    with pytest.raises((StageError, InputError), match=r"were changed, added|no file matches"):
        list(read)


@pytest.mark.parametrize("name", ["b.jsonl.gz", "b.csv.zst", "b.txt.gz", "b.ndjson.zst"])
def test_a_compressed_file_of_no_byte(tmp_path: Path, name: str) -> None:
    # Kills: a file that was cut at its very beginning, taken for one without documents. What is not
    # compressed has no end that it lacks.
    (tmp_path / "a.txt").write_text(LINES)
    (tmp_path / "b.txt").write_text("")
    assert len(plan(Corpus(f"{tmp_path}/*")).splits) == 1
    (tmp_path / name).write_text("")
    with pytest.raises(InputError, match=f"{name} is truncated to no byte; write it again$"):
        plan(Corpus(f"{tmp_path}/*"))
