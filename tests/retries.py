"""A release whose shards fail once, and the files by which two releases are compared."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import apache_beam as beam
from machine import MASTER_KEY

from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.pipelines.environment.keys import WorkerKey
from quietcorpus.pipelines.jobs.job import Job
from quietcorpus.pipelines.jobs.kind import prepare
from quietcorpus.pipelines.schema.spec import Spec
from quietcorpus.transforms.reading.documents import Corpus
from quietcorpus.transforms.reading.sources import plan
from quietcorpus.transforms.release_shards import ReleaseShards
from quietcorpus.transforms.run_files import read_run_files
from quietcorpus.transforms.shards import make_shards, staged_content


def tables(folder: Path) -> dict[str, bytes]:
    """The Parquet files of a release by their path."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.parquet")}


def staged_tables(staging: str, key: ReleaseKey) -> dict[str, bytes]:
    """The same files as they lie in a staging area."""
    files, _ = read_run_files(staging, key)
    return {file.path: b"".join(staged_content(file, key)) for file in files}


class FailsOnce(ReleaseShards):
    """Fails two shards once each, when their work is all but done."""

    failed: ClassVar[set[int]] = set()

    def process(self, shard: Any, side: Any = None) -> Iterator[object]:
        yield from super().process(shard, side)
        if shard.number in {1, 4} - self.failed:
            self.failed.add(shard.number)
            raise RuntimeError("injected")


def run_on(runner: Any, spec: Spec, staging: Path) -> dict[str, bytes]:
    """The staged files of a release on a runner of Beam's."""
    planned = plan(Corpus(spec.input.path))
    corpus = planned.corpus_digest(Corpus(spec.input.path))
    key = ReleaseKey.derive(bytes.fromhex(MASTER_KEY), spec.release, corpus)
    shards = make_shards(planned.splits, key.stage("shards", 1))
    staging.mkdir()
    worker_key = WorkerKey(spec.release, corpus, key.fingerprint)
    job = Job(spec, planned, shards, worker_key, str(staging))
    with beam.Pipeline(runner=runner) as pipeline:
        prepare(spec).build(pipeline, job)
    return staged_tables(str(staging), key)
