"""The list of a run's files: what is told of files and of tallies comes back, and is compact."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from pathlib import Path

import apache_beam as beam
import pytest

from quietcorpus.indexes.frequent_words import FrequentCounts
from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.pipelines.kinds import run_files
from quietcorpus.pipelines.kinds.run_files import WriteRunFiles, read_run_files
from quietcorpus.transforms.reading.copies import Copies
from quietcorpus.transforms.reading.documents import Reject
from quietcorpus.transforms.shards import Tally, Written

KEY = ReleaseKey.derive(bytes(32), "run-files", bytes(32))


def key() -> ReleaseKey:
    return KEY


def written(number: int) -> Written:
    path = f"data/part-{number:05d}-of-00300.parquet"
    return Written(path, f"/staging/{path}.{number:032x}", f"{number:064x}", number, number != 1)


def tally(number: int) -> Tally:
    return Tally(
        number,
        2,
        Reject(f"/in/{number}", 7, "not JSON"),
        tokens=3 * number,
        known=number,
        parts=(("release", number),),
        copies=Copies({"product": 5}, {"product": 1}),
        frequent=FrequentCounts(9, (4, 5)),
    )


def test_what_was_told_comes_back(tmp_path: Path) -> None:
    # Kills: a field of either that is lost on the way; files in the order of their ends.
    files = [written(number) for number in (2, 0, 1)]
    tallies = [tally(number) for number in (1, 2)]
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        told = (
            pipeline | "files" >> beam.Create(files),
            pipeline | "tallies" >> beam.Create(tallies),
        )
        told | WriteRunFiles(str(tmp_path), key)
    found, total = read_run_files(str(tmp_path), KEY)
    assert found == [written(number) for number in (0, 1, 2)]
    assert replace(total, parts=tuple(sorted(total.parts))) == Tally.total(tallies)


def test_gathering_many_holds_their_bytes_alone(tmp_path: Path) -> None:
    # Kills: objects for all shards at once, which take ten times the memory of their bytes.
    count = 300
    entries = [run_files._entry(written(number)) for number in range(count)]
    entries += [run_files._entry(tally(number)) for number in range(count)]
    size = sum(map(len, entries))
    write = run_files._Write(f"{tmp_path}/manifest.json", key)
    list(write.process(entries[:2]))
    tracemalloc.start()
    try:
        list(write.process(entries))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 * size
    assert size / count == pytest.approx(550, rel=0.2)
