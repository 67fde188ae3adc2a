"""What `--setup_file` sends to workers holds every package."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest
from apache_beam.runners.portability.stager import Stager

ROOT = Path(__file__).resolve().parents[2]


def test_the_setup_file_ships_every_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Kills: a package left out of the list in pyproject.toml, or a build that needs the network.
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE", "compiled.py"):
        (tmp_path / name).write_text((ROOT / name).read_text("utf-8"), "utf-8")
    modules = {"compiled.py"}
    for package in ("mechanisms", "indexes", "evaluation", "transforms", "pipelines"):
        for module in (ROOT / package).rglob("*.py"):
            name = str(module.relative_to(ROOT))
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_bytes(module.read_bytes())
            modules.add(name)
    monkeypatch.chdir(tmp_path)
    built = Stager._build_setup_package(str(tmp_path / "setup.py"), str(tmp_path / "dist"))
    with tarfile.open(built) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    assert modules <= names
