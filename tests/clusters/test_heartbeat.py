"""A job on a real cluster tells how far it is, and ends once nobody works on it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest
from machine import wait_until
from running_clusters import PATIENCE_SECONDS, Cluster

if TYPE_CHECKING:
    from tests.conftest import Workspace

pytestmark = pytest.mark.slow

# The command, whose heartbeat is quick.
COMMAND = (
    "from quietcorpus.pipelines.engine import heartbeat; heartbeat._BEAT_SECONDS = 1; "
    "from quietcorpus.pipelines.cli.main import main; main()"
)


@pytest.mark.parametrize("cluster", ["spark", "flink"], indirect=True)
def test_a_job_whose_workers_are_killed(workspace: Workspace, cluster: Cluster) -> None:
    """Kills: a launcher that says nothing of tasks, workers and losses, or waits for ever."""
    workspace.environment["SPARK_LOCAL_IP"] = "127.0.0.1"
    arguments = ("release", str(workspace.spec()), *cluster.options, "--worker-timeout", "1")
    launcher = subprocess.Popen(
        [sys.executable, "-P", "-c", COMMAND, *arguments],
        cwd=workspace.folder,
        env=workspace.environment,
        stderr=subprocess.PIPE,
        text=True,
    )
    said: list[str] = []
    reader = threading.Thread(target=lambda: said.extend(launcher.stderr or ()))
    reader.start()

    def told(pattern: str) -> bool:
        return any(re.search(pattern, line) for line in [*said])

    workers = "executors" if cluster.name == "spark" else "task managers"
    try:
        begun = rf"the job runs; .*\d+ of \d+ tasks; 2 {workers}"
        wait_until(lambda: told(begun), PATIENCE_SECONDS)
        for pid in cluster.pids()[1:]:  # the first is the master's
            os.kill(pid, signal.SIGKILL)
        assert launcher.wait(PATIENCE_SECONDS) == 1
    finally:
        launcher.kill()
        reader.join()
        print("".join(said))  # pytest shows it if the test fails
    assert told(rf"0 {workers}, 2 lost")
    refused = (
        rf"quietcorpus: error: the workers: the cluster had no {workers} for 1 min; .*; "
        "nothing was published$"
    )
    assert re.match(refused, said[-1])
