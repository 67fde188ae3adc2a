"""Staging areas: the shards in them, and those that killed launchers have left."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from quietcorpus.pipelines.storage.staging import (
    abandoned_areas,
    delete_abandoned,
    has_records,
    shards_written,
    staging_area,
)
from quietcorpus.transforms.staged import records_in


def test_shards_are_counted_once_each(tmp_path: Path) -> None:
    # Kills: a shard that was tried twice counted twice.
    (tmp_path / "data").mkdir()
    for name in ("part-00000-of-00003.parquet.ab", "part-00000-of-00003.parquet.cd"):
        (tmp_path / "data" / name).touch()
    assert shards_written(str(tmp_path)) == 1
    (tmp_path / "data" / "part-00002-of-00003.parquet.ef").touch()
    assert shards_written(str(tmp_path)) == 2
    # One that is kept of an earlier run, and made again by this one, is one shard too.
    (tmp_path / "own" / "data").mkdir(parents=True)
    for name in ("part-00000-of-00003.parquet.gh", "part-00001-of-00003.parquet.ij"):
        (tmp_path / "own" / "data" / name).touch()
    assert shards_written(str(tmp_path), f"{tmp_path}/own") == 3


def test_a_local_area_is_its_owners_alone(tmp_path: Path) -> None:
    # Kills: a folder that other users of the machine may list: names and sizes of what is staged.
    umask = os.umask(0)
    try:
        with staging_area(f"{tmp_path}/out") as area:
            assert stat.S_IMODE(os.stat(area).st_mode) == 0o700
    finally:
        os.umask(umask)


def left(output: Path, number: int) -> Path:
    """A staging area whose launcher is gone."""
    area = output.with_name(f".out.staging-{number:012x}")
    area.mkdir()
    (area / ".lock").touch()
    return area


def test_areas_without_a_lock_are_deleted_whatever_the_clock_says(tmp_path: Path) -> None:
    # Kills: an age by a clock, which may jump; a deletion that was cut short and is never finished.
    output = tmp_path / "out"
    new, old, half = (output.with_name(f".out.staging-{n:012x}") for n in (1, 2, 3))
    for area in (new, old, half):
        area.mkdir()
    (half / "data").mkdir()
    os.utime(old, (0, 0))
    os.utime(half, (2**33, 2**33))  # after every clock
    deleted, held = delete_abandoned(str(output))
    assert sorted(deleted) == sorted(map(str, (new, old, half)))
    assert held == []


def test_a_launcher_whose_new_folder_is_deleted_makes_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Kills: a launcher that fails, or goes on without a lock, as another one tidies up just then.
    output, made = str(tmp_path / "out"), []
    mkdir = os.mkdir

    def deleted_at_first(path: str, mode: int = 0o777) -> None:
        mkdir(path, mode)
        made.append(path)
        if len(made) == 1:
            assert delete_abandoned(output) == ([path], [])

    monkeypatch.setattr(os, "mkdir", deleted_at_first)
    with staging_area(output) as area:
        assert [area] == made[1:]
        assert delete_abandoned(output) == ([], [area])


def test_what_killed_launchers_have_left_is_used_once(tmp_path: Path) -> None:
    # Kills: an area that two launchers use, of which the first to end deletes it; one of a living
    # launcher; one that stays; what lies in the open in one; and files elsewhere that go with it.
    output = tmp_path / "out"
    with staging_area(str(output)) as living:
        wanted, other = left(output, 1), left(output, 2)
        (wanted / "release" / "data").mkdir(parents=True)
        elsewhere = tmp_path / "elsewhere"
        (elsewhere / "release").mkdir(parents=True)
        (elsewhere / ".lock").touch()
        output.with_name(".out.staging-" + "f" * 12).symlink_to(elsewhere)
        with abandoned_areas(str(output), lambda area: area != str(other)) as found:
            assert found == [str(wanted)]
            assert not (wanted / "release").exists()
            with abandoned_areas(str(output), lambda _: True) as again:
                assert again == [str(other)]
            deleted, held = delete_abandoned(str(output))
            assert deleted == []
            assert sorted(held) == sorted([str(wanted), living])
        assert not wanted.exists()
        assert Path(living).exists()
    assert (elsewhere / "release").exists()


def test_records_are_of_an_identity(tmp_path: Path) -> None:
    # Kills: an area of another run that is taken for one of this run, or never deleted.
    folder = Path(records_in(str(tmp_path), "ab"))
    assert not has_records(str(tmp_path), "ab")
    folder.mkdir(parents=True)
    assert not has_records(str(tmp_path), "ab")
    (folder / "00000.x").touch()
    assert has_records(str(tmp_path), "ab")
    assert not has_records(str(tmp_path), "cd")
