"""The identity of a corpus: where its files are, and how they are now."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from quietcorpus.transforms.reading.documents import Corpus
from quietcorpus.transforms.reading.sources import plan


def write(folder: Path, *, rows: int = 4, row_group_size: int = 2) -> str:
    folder.mkdir(exist_ok=True)
    table = pa.table({"text": ["quiet world"] * rows, "other": ["quiet world"] * rows})
    pq.write_table(table, folder / "a.parquet", row_group_size=row_group_size)
    (folder / "b.jsonl").write_text('{"text": "hello", "other": "hello"}\n')
    for path in folder.iterdir():
        os.utime(path, (1_700_000_000, 1_700_000_000))
    return str(folder / "*")


def digest(pattern: str, text: str = "text") -> bytes:
    corpus = Corpus(pattern, text)
    return plan(corpus).corpus_digest(corpus)


def test_the_same_corpus_has_the_same_digest(tmp_path: Path) -> None:
    pattern = write(tmp_path / "corpus")
    assert digest(pattern) == digest(pattern)
    # By another glob that finds the same files, too: it is the same corpus at the same place.
    assert digest(pattern) == digest(str(tmp_path / "corpus" / "[ab].*"))


def test_another_has_another(tmp_path: Path) -> None:
    # Kills: a digest that lacks the place, a file's time, its size, the row groups, or the column.
    pattern = write(tmp_path / "corpus")
    found = [digest(pattern), digest(pattern, "other")]
    shutil.copytree(tmp_path / "corpus", tmp_path / "moved")  # with the times
    found.append(digest(str(tmp_path / "moved" / "*")))
    os.utime(tmp_path / "corpus" / "b.jsonl", (1_700_000_001, 1_700_000_001))
    found.append(digest(pattern))
    write(tmp_path / "corpus")
    (tmp_path / "corpus" / "b.jsonl").write_text('{"text": "hello!", "other": "hello"}\n')
    os.utime(tmp_path / "corpus" / "b.jsonl", (1_700_000_000, 1_700_000_000))
    found.append(digest(pattern))
    write(tmp_path / "corpus", row_group_size=4)
    found.append(digest(pattern))
    assert len(set(found)) == len(found)


def test_splits_have_numbers(tmp_path: Path) -> None:
    splits = plan(Corpus(write(tmp_path / "corpus"))).splits
    assert [(split.number, split.format) for split in splits] == [
        (0, "parquet"),
        (1, "parquet"),
        (2, "json lines"),
    ]


@pytest.mark.parametrize(
    "change", [{"uri": "other"}, {"size": 1}, {"changed": 1.0}, {"checksum": "other"}], ids=str
)
def test_each_part_of_a_files_state_tells(change: dict[str, Any], tmp_path: Path) -> None:
    # Kills: a state that lacks one of them.
    corpus = Corpus(write(tmp_path / "corpus"))
    planned = plan(corpus)
    other = replace(planned, files=(replace(planned.files[0], **change), *planned.files[1:]))
    assert other.corpus_digest(corpus) != planned.corpus_digest(corpus)


def test_what_is_read_with_the_texts_tells_corpora_apart(tmp_path: Path) -> None:
    # A record that is unreadable in one of its columns is no document. Kills: two releases of one
    # id, one of which keeps a column, that share the noise of all but the documents it lacks.
    pattern = write(tmp_path / "corpus")
    corpora = [
        Corpus(pattern),
        Corpus(pattern, keep=("other",)),
        Corpus(pattern, id="other", also=(("mechanism.user", "text"),)),
    ]
    digests = {plan(corpus).corpus_digest(corpus) for corpus in corpora}
    assert len(digests) == len(corpora)
    same = Corpus(pattern, id="other")  # the columns are what matters, not what they are for
    assert plan(same).corpus_digest(same) in digests


def test_a_file_whose_time_is_set_back_is_another(tmp_path: Path) -> None:
    # As tools that copy do. Kills: a local file known by its size and the time that it says.
    pattern = write(tmp_path / "corpus")
    before = digest(pattern)
    path = tmp_path / "corpus" / "b.jsonl"
    path.write_text(path.read_text().replace("hello", "world"))
    os.utime(path, (1_700_000_000, 1_700_000_000))
    assert digest(pattern) != before
