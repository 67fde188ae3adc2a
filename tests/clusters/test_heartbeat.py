"""A job on a real cluster tells how far it is, and ends once nobody works on it."""

from __future__ import annotations

import os
import re
import signal
from typing import TYPE_CHECKING

import pytest
from machine import wait_until
from running_clusters import PATIENCE_SECONDS, Cluster, beyond_loopback, launched

from quietcorpus.pipelines.runners.clusters import TaskManagers

if TYPE_CHECKING:
    from tests.conftest import Workspace

pytestmark = pytest.mark.slow


def kill_workers(cluster: Cluster) -> None:
    for pid in cluster.pids()[1:]:  # the first is the master's
        os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize(
    "mortal", ["spark", pytest.param("flink", marks=pytest.mark.nightly)], indirect=True
)
def test_a_job_whose_workers_are_killed(loopback: Workspace, mortal: Cluster) -> None:
    """Kills: a launcher that says nothing of tasks, workers and losses, or waits for ever; servers
    of Beam's, Spark's or Flink's that other machines reach, and can run code on; a job of which the
    cluster's pages do not say whose it is.
    """
    workers = "executors" if mortal.name == "spark" else "task managers"
    arguments = ("release", str(loopback.spec()), *mortal.options)
    with launched(loopback.folder, loopback.environment, *arguments) as launcher:
        begun = rf"the job runs for .*; .*\d+ of \d+ tasks; 2 {workers}"
        wait_until(lambda: launcher.told(begun), PATIENCE_SECONDS)
        assert beyond_loopback([*mortal.pids(), launcher.process.pid]) == []
        # The release's id; Spark has one of Beam's behind it.
        assert re.search(r'\btest_[0-9a-f]{8}-|"name":"test"', mortal.pages())
        kill_workers(mortal)
        if mortal.name == "spark":  # Flink may end the job before it counts them out
            wait_until(lambda: launcher.told(rf"0 {workers}, 2 lost"), PATIENCE_SECONDS)
            launcher.process.terminate()
            assert launcher.wait() == 130
    if mortal.name == "flink":
        managers = TaskManagers(mortal.ui)
        wait_until(lambda: (sight := managers.look()) and sight.live == 0, PATIENCE_SECONDS)
    # Nobody comes any more.
    message = loopback.refused(None, *mortal.options, "--worker-timeout", "0.2", code=1)
    assert message.startswith(f"the workers: the cluster had no {workers} for 0.2 min; see whether")
