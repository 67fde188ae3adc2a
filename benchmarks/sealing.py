"""The cost of sealing a release until it is published: staging it, and publishing it.

    PYTHONPATH=.:tests python benchmarks/sealing.py

A release of 1 GB in 16 files is staged and published as it is, and sealed under the release key:
on a disk, where a file that is not sealed is renamed, and on a real S3 server on this machine. Rows
are random numbers, which do not compress. Each is done three times, in turn.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
import pyarrow as pa
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions
from s3_server import BUCKET, S3Server

from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.pipelines.storage.claims import Run
from quietcorpus.pipelines.storage.output import Output
from quietcorpus.transforms.shards import data_file, write_tables

FILES, ROWS, TIMES = 16, 1 << 14, 3
NUMBERS_A_ROW = 1000


def main() -> None:
    """Print the table."""
    FileSystems.set_options(PipelineOptions([]))
    numbers = np.random.default_rng().integers(0, 1 << 31, ROWS * NUMBERS_A_ROW, np.int32)
    offsets = pa.array(np.arange(ROWS + 1, dtype=np.int32) * NUMBERS_A_ROW)
    table = pa.table({"terms": pa.ListArray.from_arrays(offsets, pa.array(numbers))})
    print("| place | sealed | stage 1 GB | publish 1 GB |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        measure("disk", f"{folder}/out", table)
        (store := Path(folder) / "s3").mkdir()
        server = S3Server(store)
        server.start()
        try:
            os.environ |= server.environment
            measure("S3", f"s3://{BUCKET}/out", table)
        finally:
            server.stop()


def measure(place: str, output: str, table: pa.Table) -> None:
    """Print the medians of both ways."""
    taken: dict[bool, list[tuple[float, float]]] = defaultdict(list)
    for number in range(TIMES):
        for sealed in (False, True):
            taken[sealed].append(release(f"{output}-{number}-{sealed}", table, sealed=sealed))
    for sealed, seconds in taken.items():
        staged, published = (statistics.median(each) for each in zip(*seconds, strict=True))
        print(f"| {place} | {'yes' if sealed else 'no'} | {staged:.1f} s | {published:.1f} s |")


def release(output: str, table: pa.Table, *, sealed: bool) -> tuple[float, float]:
    """Return the seconds to stage and to publish a release."""
    key = ReleaseKey(os.urandom(32)) if sealed else None
    with Output(output).staging(Run("sealing", os.urandom(16).hex()), key) as place:
        begun = time.perf_counter()
        files = [
            write_tables([table], table.schema, data_file(number, FILES), place.staging, key)
            for number in range(FILES)
        ]
        staged = time.perf_counter()
        place.publish(files, {"README.md": "-", "release.json": "{}"}, lambda: None)
        return staged - begun, time.perf_counter() - staged


if __name__ == "__main__":
    main()
