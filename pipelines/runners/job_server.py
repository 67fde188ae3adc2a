"""A guardian that ends a job server with its launcher, even if the launcher is killed.

    python -m quietcorpus.pipelines.runners.job_server LAUNCHERS_PID COMMAND...

Without it, Spark's driver in the job server would keep the job, and the cluster's cores, for a
release that no launcher publishes. A job that Flink has taken runs to its end all the same.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_LOOK_EVERY_SECONDS = 0.5
_GRACE_SECONDS = 3  # Beam gives it five


def main(launcher: int, command: list[str]) -> int:
    """Run a command until it ends, a signal comes, or the launcher is gone; returns its code."""
    told = False

    def tell(*_: object) -> None:
        nonlocal told
        told = True

    for number in _SIGNALS:
        signal.signal(number, tell)
    server = subprocess.Popen(command)  # noqa: S603
    while server.poll() is None and os.getppid() == launcher and not told:
        time.sleep(_LOOK_EVERY_SECONDS)
    server.terminate()
    try:
        return server.wait(_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        server.kill()
        return server.wait()


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
