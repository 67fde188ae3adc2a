"""The sample of generated documents from which a dry run tells time and size."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import quietcorpus as qc
from quietcorpus.indexes.tokens.tokenizer import tokenize
from quietcorpus.pipelines.release import dry_run
from quietcorpus.pipelines.release.dry_run import Sample, Unsampled
from quietcorpus.transforms.reading.parquet_files import text_bytes

if TYPE_CHECKING:
    from tests.conftest import Workspace

WORDS = ["alpha", "beta", "gamma", "hello", "quiet", "world"]


def test_texts_of_public_words_alone() -> None:
    # Kills: words that the vocabulary lacks, documents of words' number in place of bytes.
    texts = dry_run._texts(WORDS, 3000, 50)
    found = tokenize(pa.array(texts))
    raw = found.data.tobytes()
    tokens = {raw[a:b].decode() for a, b in zip(found.starts, found.ends, strict=True)}
    assert tokens == set(WORDS)
    assert sum(map(len, texts)) / 50 == pytest.approx(3000, rel=0.05)
    assert texts[0].count(". ") > 20  # sentences


def test_what_a_document_takes() -> None:
    # Kills: the cost of a start that counts for every document, a run that grows without end.
    runs: list[int] = []

    def run(documents: int) -> dry_run._Run:
        runs.append(documents)
        start = 1.0 if len(runs) == 1 else 0.2
        return dry_run._Run(documents, start + 0.002 * documents, 700 + 90 * documents)

    found = dry_run._measured(500, run)
    assert runs == [1, 1, 8, 64, 512]  # which takes twice as long as the first
    assert found.exact
    assert found.of(10_000) == pytest.approx((21, 900_700), rel=1e-3)


def test_a_slow_kind_is_not_sampled_for_long() -> None:
    # Kills: a dry run of minutes, a start that is told as if each document had one.
    runs: list[int] = []

    def run(documents: int) -> dry_run._Run:
        runs.append(documents)
        return dry_run._Run(documents, 3 + 0.1 * documents, documents)

    found = dry_run._measured(500, run)
    assert runs == [1, 1, 8]
    assert not found.exact
    assert found.seconds == pytest.approx(3.8 / 8)  # at most


def test_the_size_of_texts_in_parquet(tmp_path: Path) -> None:
    # Kills: the size after compression, of all columns, of one row group.
    texts = [f"{number:06d}" * 100 for number in range(500)]
    table = pa.table({"text": texts, "other": texts})
    path = str(tmp_path / "a.parquet")
    pq.write_table(table, path, row_group_size=100, use_dictionary=False, compression="zstd")
    assert text_bytes(path, "text") == pytest.approx(500 * 604, rel=0.05)


@pytest.mark.slow
def test_nothing_of_the_corpus_is_read(workspace: Workspace) -> None:
    # Kills: a sample of the corpus's own documents. Here, nobody could read them.
    path = workspace.parquet({"text": ["hello quiet world"] * 3000}, use_dictionary=False)
    content = bytearray(path.read_bytes())
    content[4:2000] = bytes(1996)
    path.write_bytes(content)
    with pytest.raises(OSError, match=r"."):
        pq.read_table(path)
    content = {
        "release": "test",
        "input": {"path": str(path)},
        "output": str(workspace.output),
        "mechanism": {
            "kind": "histogram",
            "precision": 2,
            "epsilon": 4,
            "vocabulary": {"public": str(workspace.folder / "vocabulary.txt")},
        },
    }
    found = qc.dry_run(content)
    assert isinstance(found.sample, Sample)
    assert found.sample.document_bytes in range(19, 25)
    assert found.documents == 3000


def test_what_is_not_sampled(workspace: Workspace) -> None:
    # Kills: a sample of documents so long that it would take minutes.
    spec: Any = SimpleNamespace(input=SimpleNamespace(text="text"))
    path = workspace.parquet({"text": ["x" * 100_000] * 3}, use_dictionary=False)
    split = SimpleNamespace(uri=str(path))
    planned: Any = SimpleNamespace(documents=3, splits=[split])
    engine: Any = None
    for words, reason in (([], "generated text would not"), (WORDS, "documents are too long")):
        kind: Any = SimpleNamespace(sample_words=words)
        found = dry_run.timed(spec, kind, planned, engine)
        assert isinstance(found, Unsampled)
        assert found.reason.startswith(reason)
