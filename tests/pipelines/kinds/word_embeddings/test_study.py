"""Tables that a pipeline reads from memory."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from apache_beam.io.filesystem import BeamIOError
from apache_beam.io.filesystems import FileSystems

from quietcorpus.pipelines.kinds.word_embeddings.study import held
from quietcorpus.pipelines.storage import files as storage
from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.reading.documents import Corpus
from quietcorpus.transforms.reading.sources import plan, read

TABLE = pa.table({"text": ["hello world", "quiet island"], "user": [1, 2]})
CORPUS_COLUMNS = (("mechanism.user", "user"),)


def test_a_corpus_in_memory_is_read_as_one_on_a_disk() -> None:
    # Kills: another order or type of what is read, a size that says the file is empty.
    with held(TABLE) as uri:
        corpus = Corpus(uri, also=CORPUS_COLUMNS)
        (split,) = plan(corpus).splits
        (found,) = read(split, corpus)
    assert found.texts.to_pylist() == TABLE["text"].to_pylist()
    assert found.columns["user"].to_pylist() == [1, 2]


def test_it_ends_with_the_context_and_two_are_apart() -> None:
    # Kills: a corpus that is held for as long as the process lives, one name for all of them.
    with held(TABLE) as uri, held(TABLE.slice(1)) as other:
        assert storage.read_table(uri) == TABLE
        assert len(storage.read_table(other)) == 1
    for gone in (uri, other):
        with pytest.raises(BeamIOError):
            FileSystems.open(gone)
        with pytest.raises(InputError, match="no file matches"):
            plan(Corpus(gone))


def test_nothing_is_written_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Kills: a file system that falls back on the local one, where a URI is a relative path.
    monkeypatch.chdir(tmp_path)
    with held(TABLE) as uri:
        for write in (
            lambda: FileSystems.create(uri + "2"),
            lambda: FileSystems.copy([uri], [uri + "2"]),
            lambda: FileSystems.mkdirs(uri + "2"),
        ):
            with pytest.raises(BeamIOError):
                write()
    assert not list(tmp_path.iterdir())


def seen(uri: str) -> bool:
    """Return whether a process finds it."""
    return FileSystems.exists(uri)


@pytest.mark.slow
def test_another_process_sees_nothing_of_it() -> None:
    # Kills: a file behind the URI, in a memory disk too.
    spawned = multiprocessing.get_context("spawn")
    # A pool of multiprocessing waits forever for a process that dies.
    with held(TABLE) as uri, ProcessPoolExecutor(1, mp_context=spawned) as pool:
        assert seen(uri)
        assert not pool.submit(seen, uri).result()
