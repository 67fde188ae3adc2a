"""Where a release is put together, and how it appears: whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines import storage
from transforms.errors import InputError
from transforms.shards import Written


def staged(staging: str, name: str) -> Written:
    path = Path(staging) / f"{name}.attempt"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(name)
    return Written(name, str(path), "0" * 64, 1)


def publish(output: Path, staging: str) -> None:
    files = [staged(staging, "data/part-0.parquet"), staged(staging, "vocabulary.parquet")]
    storage.publish(str(output), staging, files, {"README.md": "read", "release.json": "{}"}, int)


def test_a_release_appears_at_once_and_nothing_else(tmp_path: Path) -> None:
    output = tmp_path / "deep" / "out"
    with storage.staging_area(str(output)) as staging:
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
        with storage.staging_area(str(tmp_path / "out")) as staging:
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
        with storage.staging_area(str(output)) as staging:
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
    with storage.staging_area(output) as first, storage.staging_area(output) as second:
        assert first != second


def test_an_empty_folder_may_become_the_output(tmp_path: Path) -> None:
    output = tmp_path / "out"
    output.mkdir()
    storage.refuse_existing(str(output))
    with storage.staging_area(str(output)) as staging:
        publish(output, staging)
    assert (output / "release.json").read_text() == "{}"


def test_what_is_there_is_refused(tmp_path: Path) -> None:
    output = tmp_path / "out"
    storage.refuse_existing(str(output))
    output.symlink_to(tmp_path / "nowhere")
    with pytest.raises(InputError, match="exists already and is not empty; name another place"):
        storage.refuse_existing(str(output))
    output.unlink()
    output.write_text("a file")
    with pytest.raises(InputError, match="exists already and is not empty"):
        storage.refuse_existing(str(output))
    output.unlink()
    output.mkdir()
    (output / ".hidden").touch()
    with pytest.raises(InputError, match="exists already and is not empty"):
        storage.refuse_existing(str(output))
    (output / "release.json").touch()
    with pytest.raises(InputError, match="holds a release already; name another place"):
        storage.refuse_existing(str(output))
