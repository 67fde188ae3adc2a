"""A pipeline of a user's own, the repository's example, on every engine: the same rows."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from machine import MASTER_KEY, OTHER_KEY, ROOT

if TYPE_CHECKING:
    from running_clusters import Cluster

pytestmark = pytest.mark.slow

EXAMPLE = ROOT / "examples" / "own_pipeline.py"
LOCAL = "--runner=FnApiRunner"
Rows = list[str]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory, lee_texts: list[str]) -> Path:
    """Three hundred news texts, in two files."""
    folder = tmp_path_factory.mktemp("composed")
    for number in range(2):
        texts = lee_texts[number::2]
        ids = [f"c{2 * place + number}" for place in range(len(texts))]
        columns = {"complaint_id": ids, "narrative": texts, "product": ["loan"] * len(texts)}
        pq.write_table(pa.table(columns), folder / f"{number}.parquet", row_group_size=20)
    return folder


def released(
    corpus: Path, index: Path, *options: str, environment: Mapping[str, str] | None = None
) -> Rows:
    """Run the example, and return its rows in an order of their own."""
    output = corpus / f"out-{random.randbytes(4).hex()}"
    done = subprocess.run(
        [sys.executable, EXAMPLE, f"{corpus}/*.parquet", str(index), str(output), *options],
        env=os.environ | {"QUIETCORPUS_MASTER_KEY": MASTER_KEY} | dict(environment or {}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    files = [pq.ParquetFile(path) for path in output.glob("rows-*.parquet")]
    rows = [row for file in files for row in file.read(use_threads=False).to_pylist()]
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


@pytest.fixture(scope="module")
def reference(corpus: Path, word_index: Path) -> Rows:
    """The rows that one process makes."""
    return released(corpus, word_index, LOCAL)


def test_processes_and_order_do_not_show(
    corpus: Path, word_index: Path, reference: Rows, tmp_path: Path
) -> None:
    assert len(reference) == 300
    several = ("--direct_num_workers=2", "--direct_running_mode=multi_processing")
    assert released(corpus, word_index, LOCAL, *several) == reference
    whole = pa.concat_tables(
        pq.ParquetFile(path).read(use_threads=False) for path in corpus.glob("*.parquet")
    )
    order = random.sample(range(len(whole)), len(whole))
    pq.write_table(whole.take(pa.array(order)), tmp_path / "shuffled.parquet")
    assert released(tmp_path, word_index, LOCAL) == reference


def test_another_key_does_not_conform(corpus: Path, word_index: Path, reference: Rows) -> None:
    # The negative control.
    other = released(corpus, word_index, LOCAL, environment={"QUIETCORPUS_MASTER_KEY": OTHER_KEY})
    assert not set(other) & set(reference)


@pytest.mark.parametrize("cluster", ["spark", "flink"], indirect=True)
def test_a_cluster_conforms(
    cluster: Cluster, corpus: Path, word_index: Path, reference: Rows
) -> None:
    worker = {"command": "quietcorpus-worker"}
    options = [*cluster.options, "--environment_type=PROCESS"]
    options.append(f"--environment_config={json.dumps(worker)}")
    local = {"SPARK_LOCAL_IP": "127.0.0.1"}
    assert released(corpus, word_index, *options, environment=local) == reference
