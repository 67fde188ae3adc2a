"""The list of a run's files: what is told of files and of tallies comes back, and is compact."""

from __future__ import annotations

import hashlib
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import apache_beam as beam
import pytest
from large_tallies import larger

from quietcorpus.indexes.tokens.written_language import FrequentCounts
from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.transforms import run_files
from quietcorpus.transforms.reading.copies import Copies
from quietcorpus.transforms.reading.documents import Reject
from quietcorpus.transforms.run_files import WriteRunFiles, read_run_files
from quietcorpus.transforms.shards import Tally, Written

MANY = 1_300
KEY = ReleaseKey.derive(bytes(32), "run-files", bytes(32))


def key() -> ReleaseKey:
    return KEY


def written(number: int) -> Written:
    path = f"data/part-{number:05d}-of-00300.parquet"
    digest = hashlib.sha256(b"%d" % number).hexdigest()
    return Written(path, f"/staging/{path}.{digest[:32]}", digest[::-1], number, number != 1)


def tally(number: int) -> Tally:
    return Tally(
        number,
        2,
        Reject(f"/in/{number}", 7, "not JSON"),
        tokens=3 * number,
        known=number,
        parts=(("release", number),),
        copies=Copies({"product": 5}, {"product": 1}, {"product": 9}),
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


def test_the_size_of_the_list_tells_nothing_of_the_texts(tmp_path: Path) -> None:
    # Kills: counts in as many digits as they have, which show in the length of a sealed file.
    def size_of(own: Tally, rows: int = 1) -> int:
        told = bundle([replace(written(1), rows=rows), own])
        (uri,) = run_files._Write(f"{tmp_path}/manifest.json", key).process(told)
        _, total = read_run_files(str(tmp_path), KEY)
        assert total == own
        return Path(uri).stat().st_size

    own = tally(1)
    expected = size_of(own)
    assert size_of(own, 10**9) == expected
    for changes in larger(own):
        assert size_of(replace(own, **changes)) == expected


def test_gathering_many_holds_their_bytes_alone(tmp_path: Path) -> None:
    # Kills: objects for all shards at once, which take ten times the memory of their bytes.
    told = [*map(written, range(MANY)), *map(tally, range(MANY))]
    size = sum(len(run_files._entry(one)) for one in told)
    packed = bundle(told)
    write = run_files._Write(f"{tmp_path}/manifest.json", key)
    list(write.process(packed[:1]))
    assert peak(lambda: list(write.process(packed))) < 2.2 * size
    assert size / MANY == pytest.approx(660, rel=0.2)


def test_what_is_between_steps_is_small() -> None:
    # Kills: entries as they are, which Beam holds six times; a bundle's as one piece.
    told = [*map(written, range(MANY)), *map(tally, range(MANY))]
    packed = bundle(told)
    assert len(packed) == 2 * MANY // run_files._AT_ONCE + 1
    assert sum(map(len, packed)) < 0.25 * sum(len(run_files._entry(one)) for one in told)
    assert bundle([]) == []


def test_reading_the_list_holds_files_alone(tmp_path: Path) -> None:
    # Kills: dictionaries of all files at once.
    files = [written(number) for number in range(MANY)]
    list(run_files._Write(f"{tmp_path}/manifest.json", key).process(bundle([*files, tally(0)])))
    assert peak(lambda: read_run_files(str(tmp_path), KEY)) < 800 * MANY


def bundle(told: list[Written | Tally]) -> list[bytes]:
    """Pack files and tallies as those of one bundle."""
    pack = run_files._Pack()
    pack.start_bundle()
    packed = [one for each in told for one in pack.process(each)]
    return packed + [one.value for one in pack.finish_bundle()]


def peak(act: Callable[[], object]) -> int:
    """Measure the most bytes that Python holds at once meanwhile."""
    tracemalloc.start()
    try:
        act()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
