"""A job server that ends with its launcher, also where the launcher is killed.

    python -m pipelines.guardian LAUNCHERS_PID COMMAND...

Left to itself it would keep its job, and the cluster's cores, for a release that nobody publishes.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

_LOOK_EVERY_SECONDS = 0.5
_GRACE_SECONDS = 4  # Beam gives it five


def main(launcher: int, command: list[str]) -> int:
    """Run a command until it ends, is told to, or the launcher is gone; its exit code."""
    told = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: told.set())
    server = subprocess.Popen(command)  # noqa: S603
    while server.poll() is None and os.getppid() == launcher:
        if told.wait(_LOOK_EVERY_SECONDS):
            break
    server.terminate()
    try:
        return server.wait(_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        server.kill()
        return server.wait()


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
