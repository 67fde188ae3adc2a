"""A repository with packages called like our folders, in which a release is made."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from machine import namesakes

if TYPE_CHECKING:
    from tests.conftest import Workspace

API = """
import quietcorpus as qc
card = qc.release("spec.yaml", workers=2)
assert qc.verify("released/out") == card
"""
RELEASE = ("release", "spec.yaml", "--workers", "2")
STARTS = {
    "module": ("-m", "quietcorpus.cli.main", *RELEASE),
    "api": ("-c", API),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "start",
    [
        "module",
        # An installation is started so in `test_packaging.py`.
        pytest.param("command", marks=pytest.mark.nightly),
        pytest.param("api", marks=pytest.mark.nightly),
    ],
)
def test_the_packages_are_told_apart(workspace: Workspace, start: str) -> None:
    """Kills: a launcher or a worker that takes another's package for ours.

    Python finds the working folder first where it runs a module or a line of code, and the path's
    folders always.
    """
    workspace.spec()
    done = subprocess.run(
        [sys.executable, *STARTS[start]] if start in STARTS else workspace.command(*RELEASE),
        cwd=workspace.folder,
        env=workspace.environment | namesakes(workspace.folder),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert workspace.run("verify", "released/out").returncode == 0
