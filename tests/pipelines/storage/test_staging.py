"""The shards in a staging area."""

from __future__ import annotations

from pathlib import Path

from quietcorpus.pipelines.storage.staging import shards_written


def test_shards_are_counted_once_each(tmp_path: Path) -> None:
    # Kills: a shard that was tried twice counted twice.
    (tmp_path / "data").mkdir()
    for name in ("part-00000-of-00003.parquet.ab", "part-00000-of-00003.parquet.cd"):
        (tmp_path / "data" / name).touch()
    assert shards_written(str(tmp_path)) == 1
    (tmp_path / "data" / "part-00002-of-00003.parquet.ef").touch()
    assert shards_written(str(tmp_path)) == 2
