"""`make release-dry`: what it refuses before it builds anything."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from machine import ROOT, git

FILES = (".ci/release-dry", "CHANGELOG.md", "CITATION.cff", "pyproject.toml")
# A Python that reads the version, and has nothing to build with.
PYTHON = f'#!/bin/sh\n[ "$1" = -c ] && exec {sys.executable} "$@"\nexit 1\n'


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with the files that are compared, at version 1.2.3 everywhere."""
    folder = tmp_path / "repository"
    for name in FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    (folder / "pyproject.toml").write_text('[project]\nversion = "1.2.3"\n')
    (folder / "CITATION.cff").write_text("cff-version: 1.2.0\nversion: 1.2.3\n")
    (folder / "CHANGELOG.md").write_text("# Changelog\n\n## 1.2.3 - 2026-11-24\n\n## 1.2.2\n")
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "all")
    return folder


def said(repository: Path) -> str:
    """The last line of the script, which fails."""
    python = repository.with_name("python")
    python.write_text(PYTHON)
    python.chmod(0o700)
    done = subprocess.run(
        [repository / ".ci" / "release-dry", python],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert not done.stdout
    return done.stderr.splitlines()[-1].removeprefix("release-dry: ")


def replaced(name: str, before: str, after: str) -> Callable[[Path], None]:
    """A committed change of a file."""

    def change(repository: Path) -> None:
        path = repository / name
        assert before in path.read_text()
        path.write_text(path.read_text().replace(before, after))
        git(repository, "commit", "--quiet", "--all", "--message", "changed")

    return change


BUILDS = "the build failed"
CHANGELOG = "CHANGELOG.md begins with '## {} - 2026-11-24', and pyproject.toml has version {}"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param(lambda folder: None, BUILDS, id="nothing"),
        pytest.param(
            replaced("CHANGELOG.md", "1.2.3 - 2026-11-24", "Unreleased"), BUILDS, id="unreleased"
        ),
        pytest.param(
            replaced("CHANGELOG.md", "## 1.2.3 - ", "## 1.2.4 - "),
            CHANGELOG.format("1.2.4", "1.2.3"),
            id="changelog",
        ),
        pytest.param(
            replaced("CITATION.cff", "version: 1.2.3", "version: 1.2.30"),
            "CITATION.cff has another version than 1.2.3",
            id="citation",
        ),
        pytest.param(
            replaced("pyproject.toml", "1.2.3", "1.3.0"),
            CHANGELOG.format("1.2.3", "1.3.0"),
            id="version",
        ),
        pytest.param(
            lambda folder: (folder / "pyproject.toml").write_text('[project]\nversion="1.2.3"\n'),
            "the tree has changes: commit or remove them",
            id="changed",
        ),
        pytest.param(
            lambda folder: (folder / "new.py").touch(),
            "the tree has changes: commit or remove them",
            id="new file",
        ),
        pytest.param(
            lambda folder: git(folder, "tag", "v1.2.3"),
            "there is a tag v1.2.3: raise the version",
            id="tag",
        ),
        pytest.param(lambda folder: git(folder, "tag", "v1.2.2"), BUILDS, id="an earlier tag"),
    ],
)
def test_what_is_refused(repository: Path, change: Callable[[Path], object], message: str) -> None:
    # Kills: a version that is not the changelog's or the citation's, or was released before; files
    # that are built and not committed.
    change(repository)
    assert said(repository) == message
