"""What a run on a cluster says while it goes on."""

from __future__ import annotations

import logging
import time
from pathlib import Path

import pytest

from quietcorpus.pipelines.terminal import progress


def test_shards_are_counted_once_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # Kills: a shard that was tried twice counted twice; a thread that outlives the run.
    monkeypatch.setattr(progress, "_LOOK_EVERY_SECONDS", 0.01)
    (tmp_path / "data").mkdir()
    for name in ("part-00000-of-00003.parquet.ab", "part-00000-of-00003.parquet.cd"):
        (tmp_path / "data" / name).touch()
    with caplog.at_level(logging.INFO), progress.shards_counted(str(tmp_path), 3):
        while "1 of 3 shards are written" not in caplog.messages:
            time.sleep(0.01)
        (tmp_path / "data" / "part-00002-of-00003.parquet.ef").touch()
        while "2 of 3 shards are written" not in caplog.messages:
            time.sleep(0.01)
    time.sleep(0.1)
    said = len(caplog.messages)
    time.sleep(0.1)
    assert len(caplog.messages) == said
