"""Where a release is put together, and how it appears: whole or not at all."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.pipelines.storage.output import Output
from quietcorpus.pipelines.storage.publishing import Folder, _place
from quietcorpus.pipelines.storage.staging import staging_area
from quietcorpus.transforms.errors import InputError, StageError
from quietcorpus.transforms.shards import Written, write_content

KEY = ReleaseKey(os.urandom(32))


def staged(staging: str, name: str) -> Written:
    return write_content(name.encode(), 1, name, staging, KEY)


def publish(output: Path, staging: str) -> None:
    files = [staged(staging, "data/part-0.parquet"), staged(staging, "vocabulary.parquet")]
    Folder(str(output), staging, KEY).publish(
        files, {"README.md": "read", "release.json": "{}"}, int
    )


def test_a_release_appears_at_once_and_nothing_else(tmp_path: Path) -> None:
    output = tmp_path / "deep" / "out"
    with staging_area(str(output)) as staging:
        staged(staging, "left over")
        assert Path(staging).parent == output.parent
        publish(output, staging)
    assert sorted(str(path.relative_to(output)) for path in output.rglob("*.*")) == [
        "README.md",
        "data/part-0.parquet",
        "release.json",
        "vocabulary.parquet",
    ]
    assert list(output.parent.iterdir()) == [output]


@pytest.mark.parametrize("failure", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_the_staging_area_goes_whatever_happens(
    tmp_path: Path, failure: type[BaseException]
) -> None:
    def fail() -> None:
        with staging_area(str(tmp_path / "out")) as staging:
            staged(staging, "data/part-0.parquet")
            raise failure

    with pytest.raises(failure):
        fail()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("occupant", ["release", "file"])
def test_an_output_that_appears_meanwhile_is_left_alone(tmp_path: Path, occupant: str) -> None:
    # Two runs with one output: the second to publish must lose, and change nothing.
    output = tmp_path / "out"

    def race() -> None:
        with staging_area(str(output)) as staging:
            if occupant == "file":
                output.write_text("kept")
            else:
                output.mkdir()
                (output / "release.json").write_text("kept")
            publish(output, staging)

    with pytest.raises(InputError, match=f"output: {output} appeared meanwhile"):
        race()
    kept = output if occupant == "file" else output / "release.json"
    assert kept.read_text() == "kept"
    assert list(tmp_path.iterdir()) == [output]


def test_two_runs_have_two_staging_areas(tmp_path: Path) -> None:
    output = str(tmp_path / "out")
    with staging_area(output) as first, staging_area(output) as second:
        assert first != second


# Holds a staging area until it is killed.
HOLDER = """
import sys, time
from quietcorpus.pipelines.storage.staging import staging_area
with staging_area(sys.argv[1]) as staging:
    print(staging, flush=True)
    time.sleep(600)
"""


def test_the_staging_area_of_a_killed_launcher_goes(tmp_path: Path) -> None:
    # As soon as another run has the output, and no sooner. Kills: folders that stay for ever, the
    # folder of a run that is under way, and another output's.
    output = str(tmp_path / "out")
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, output], stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        staging = Path(holder.stdout.readline().strip())
        with staging_area(output):
            assert staging.exists()
        with staging_area(str(tmp_path / "out2")):
            assert staging.exists()
        holder.kill()
        holder.wait()
        (staging / "data").mkdir()
        (staging / "data" / "part").touch()
        with staging_area(str(tmp_path / "ou")):
            assert staging.exists()
        with staging_area(output):
            assert not staging.exists()
    assert list(tmp_path.iterdir()) == []


def test_a_staging_area_without_a_lock_goes_once_it_is_old(tmp_path: Path) -> None:
    # A launcher makes the folder first, and then the lock. Kills: a folder that is deleted in
    # between, and one that stays for ever.
    young, old = (tmp_path / f".out.staging-{digit * 12}" for digit in "01")
    for folder in (young, old):
        folder.mkdir()
    os.utime(old, (0, 0))
    with staging_area(str(tmp_path / "out")):
        assert young.exists()
        assert not old.exists()


def test_an_empty_folder_may_become_the_output(tmp_path: Path) -> None:
    output = tmp_path / "out"
    output.mkdir()
    Output(str(output)).require_free()
    with staging_area(str(output)) as staging:
        publish(output, staging)
    assert (output / "release.json").read_text() == "{}"


def test_what_is_there_is_refused(tmp_path: Path) -> None:
    output = tmp_path / "out"
    Output(str(output)).require_free()
    output.symlink_to(tmp_path / "nowhere")
    with pytest.raises(InputError, match="exists already and is not empty; name another place"):
        Output(str(output)).require_free()
    output.unlink()
    output.write_text("a file")
    with pytest.raises(InputError, match="exists already and is not empty"):
        Output(str(output)).require_free()
    output.unlink()
    output.mkdir()
    (output / ".hidden").touch()
    with pytest.raises(InputError, match="exists already and is not empty"):
        Output(str(output)).require_free()
    (output / "release.json").touch()
    with pytest.raises(InputError, match="holds a release already; name another place"):
        Output(str(output)).require_free()


def test_an_area_that_was_taken_for_left_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Another launcher deletes it between the lock's making and its taking. Kills: a run whose
    # staging area is gone before it begins.
    lock, taken = fcntl.flock, []

    def late(file: Any, how: int) -> None:
        if not taken:
            taken.append(how)
            shutil.rmtree(Path(file.name).parent)
        lock(file, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with staging_area(str(tmp_path / "out")) as staging:
        assert taken
        assert Path(staging, ".lock").exists()
    assert list(tmp_path.iterdir()) == []


def test_publishing_stops_at_the_first_failure(tmp_path: Path) -> None:
    # Kills: files that are placed although the run was told to stop, for as long as that takes.
    output = tmp_path / "out"
    with staging_area(str(output)) as staging:
        files = [staged(staging, f"data/part-{number:03d}") for number in range(100)]
        Path(files[0].staged).write_bytes(b"damaged")
        placed: list[str] = []

        def slow(file: Written, content: Iterator[bytes]) -> None:
            time.sleep(0.05 if file != files[0] else 0)
            list(content)
            placed.append(file.path)

        with pytest.raises(StageError, match="changed on its way"):
            _place(files, slow, KEY)
    assert len(placed) <= 32  # those that had begun
