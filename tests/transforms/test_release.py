"""The release of a shard: the sizes of its row groups."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from released_files import released_file

from quietcorpus.transforms.privatizers import bags
from quietcorpus.transforms.reading import records
from quietcorpus.transforms.reading.documents import Corpus


def test_sizes_of_row_groups_do_not_depend_on_texts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Wherever a long text ends a batch. Kills: row groups that end where batches do, or that hold
    # all that has been read.
    monkeypatch.setattr(bags, "ROW_GROUP_ROWS", 64)
    monkeypatch.setattr(records, "BATCH_BYTES", 1000)
    sizes = []
    for name, places in {"short": [], "one": [9], "some": [9, 10, 100, 250]}.items():
        texts = ["quiet " * (200 if row in places else 1) for row in range(300)]
        corpus = tmp_path / f"{name}.jsonl"
        corpus.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
        (tmp_path / name).mkdir()
        file = pq.ParquetFile(released_file(Corpus(str(corpus)), tmp_path / name))
        groups = map(file.metadata.row_group, range(file.num_row_groups))
        sizes.append([group.num_rows for group in groups])
    assert sizes == [[64, 64, 64, 64, 44]] * 3
