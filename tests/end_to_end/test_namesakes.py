"""A repository with packages called like our folders, in which a release is made."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from machine import namesakes

if TYPE_CHECKING:
    from tests.conftest import Workspace


@pytest.mark.parametrize("module", [False, True], ids=["command", "module"])
def test_the_packages_are_told_apart(workspace: Workspace, module: bool) -> None:
    """Kills: a launcher or a worker that takes another's package for ours.

    Python finds the working folder first where it runs a module, and the path's folders always.
    """
    begin = [sys.executable, "-m", "quietcorpus.pipelines.cli.main"]
    arguments = ("release", str(workspace.spec()), "--workers", "2")
    done = subprocess.run(
        [*begin, *arguments] if module else workspace.command(*arguments),
        cwd=workspace.folder,
        env=workspace.environment | namesakes(workspace.folder),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert workspace.run("verify", "released/out").returncode == 0
