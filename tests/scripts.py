"""Scripts that run in a workspace, such as the command with something that goes wrong in it."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conftest import Workspace

# Runs the command, and kills it where it calls a function with an argument that holds a word.
KILLED = """
import importlib, os, signal, sys
module, name, word = sys.argv[1:4]
del sys.argv[1:4]
from quietcorpus.cli.main import main
place = importlib.import_module(module)
original = getattr(place, name)
def fatal(*arguments, **options):
    if word in repr(arguments):
        os.kill(os.getpid(), signal.SIGKILL)
    return original(*arguments, **options)
setattr(place, name, fatal)
main()
"""
IN_THE_MIDDLE = ("quietcorpus.pipelines.release.run", "read_run_files", "staging")
"""Where a release has made its files, and has not committed them."""
HALF_PUBLISHED = ("quietcorpus.pipelines.storage.stores", "create_exclusively", "out/README.md")
"""Where a release has uploaded its files, and neither README.md nor release.json."""


def run_in(
    workspace: Workspace, *command: str, seconds: float = 300
) -> subprocess.CompletedProcess[str]:
    """Run a command in a workspace's folder and environment, for so long at most."""
    return subprocess.run(
        command,
        cwd=workspace.folder,
        env=workspace.environment,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )


def run_script(
    workspace: Workspace, code: str, *arguments: str
) -> subprocess.CompletedProcess[str]:
    """Run Python code likewise, with these arguments, in a process that has imported nothing."""
    return run_in(workspace, sys.executable, "-c", code, *arguments)


def killed(workspace: Workspace, code: str, *arguments: str) -> None:
    """Run a script that makes a release of the workspace's spec, and is killed."""
    done = workspace.run_code(code, *arguments, "release", "spec.yaml")
    assert done.returncode == -signal.SIGKILL, done.stderr
