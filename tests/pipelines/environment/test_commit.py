"""The commit that `quietcorpus --version` says."""

from __future__ import annotations

from pathlib import Path

import pytest
from machine import git

from quietcorpus.pipelines.environment.commit import commit_of, commit_to_build

GIVEN = "fedcba9876543210"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """The package's folder of a checkout with one commit."""
    folder = tmp_path / "checkout" / "quietcorpus"
    folder.mkdir(parents=True)
    (folder / "api.py").write_text("one\n")
    git(folder.parent, "init", "--quiet")
    git(folder.parent, "add", ".")
    git(folder.parent, "commit", "--quiet", "--message", "all")
    return folder


def test_a_checkout_tells_its_commit(package: Path) -> None:
    head = git(package.parent, "rev-parse", "HEAD")[:12]
    assert commit_of(package) == head
    (package.parent / "notes").touch()
    assert commit_of(package) == head
    # Kills: a commit that is said of files that are not of it.
    (package / "api.py").write_text("two\n")
    assert commit_of(package) == f"{head}.modified"


def test_a_build_keeps_its_commit(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUIETCORPUS_COMMIT", GIVEN)
    assert commit_to_build(package) == commit_of(package) != GIVEN[:12]
    (package / "COMMIT").write_text("0123456789ab\n")
    assert commit_to_build(package) == commit_of(package) == "0123456789ab"


def test_nothing_breaks_where_nothing_tells(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Kills: an installation that takes somebody's repository around it for its own.
    installed = package.parent / "site-packages" / "quietcorpus"
    installed.mkdir(parents=True)
    assert commit_of(installed) is None
    assert commit_to_build(installed) is None
    monkeypatch.setenv("QUIETCORPUS_COMMIT", GIVEN)
    assert commit_to_build(installed) == GIVEN[:12]
    monkeypatch.setenv("PATH", str(tmp_path))  # no git
    assert commit_of(package) is None
