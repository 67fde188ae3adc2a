"""A job server ends with its launcher, however that ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
from machine import wait_until

PATIENCE_SECONDS = 120
# A launcher: it starts a guarded sleep, whose process id goes into a file, and sleeps as well.
LAUNCHER = """
import os, subprocess, sys
subprocess.Popen([sys.executable, "-m", "quietcorpus.pipelines.runners.job_server",
                  str(os.getpid()),
                  "sh", "-c", sys.argv[1], "sh", sys.argv[2]]).wait()
"""
SERVER = "echo $$ > $1.new; mv $1.new $1; exec sleep 600"
STUBBORN = "trap '' INT TERM; echo $$ > $1.new; mv $1.new $1; while :; do sleep 1; done"


def started(folder: Path, script: str) -> tuple[subprocess.Popen[bytes], psutil.Process]:
    named = folder / "pid"
    launcher = subprocess.Popen([sys.executable, "-c", LAUNCHER, script, str(named)])
    wait_until(named.exists, PATIENCE_SECONDS)
    return launcher, psutil.Process(int(named.read_text()))


def test_a_killed_launcher(tmp_path: Path) -> None:
    """Kills: a guardian that looks for its launcher's id, which a zombie keeps."""
    launcher, server = started(tmp_path, SERVER)
    time.sleep(2)
    assert server.is_running()  # it is the launcher's end that ends it
    launcher.kill()  # nobody waits for it until the server is gone
    wait_until(lambda: not server.is_running(), PATIENCE_SECONDS)
    launcher.wait()


def test_a_server_that_does_not_listen(tmp_path: Path) -> None:
    """Kills: a guardian that asks and does not make sure."""
    launcher, server = started(tmp_path, STUBBORN)
    launcher.kill()
    launcher.wait()
    wait_until(lambda: not server.is_running(), PATIENCE_SECONDS)


def test_a_signal_ends_the_server(tmp_path: Path) -> None:
    """Kills: a guardian that dies of a signal and leaves the server."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        folder = tmp_path / number.name
        folder.mkdir()
        launcher, server = started(folder, SERVER)
        os.kill(server.ppid(), number)
        wait_until(lambda server=server: not server.is_running(), PATIENCE_SECONDS)
        launcher.wait(PATIENCE_SECONDS)


def test_the_servers_own_end_is_told(tmp_path: Path) -> None:
    """Kills: a guardian that hides why the server did not come up."""
    command = [
        sys.executable,
        "-m",
        "quietcorpus.pipelines.runners.job_server",
        str(os.getpid()),
        "sh",
        "-c",
        "exit 7",
    ]
    assert subprocess.run(command, check=False).returncode == 7
