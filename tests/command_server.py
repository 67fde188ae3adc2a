"""Runs the command line in forked children of a process that has imported it already.

A test run has many commands, and importing Beam takes longer than most of them. Each line of
standard input is a request, each line of standard output its exit code.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any

import pipelines.release
import pipelines.verify  # noqa: F401
from pipelines.cli import main

_TIMEOUT_SECONDS = 600


def _become_the_command(request: dict[str, Any]) -> None:
    signal.alarm(_TIMEOUT_SECONDS)
    for descriptor, path in enumerate((os.devnull, request["stdout"], request["stderr"])):
        opened = os.open(path, os.O_RDWR)
        os.dup2(opened, descriptor)
        os.close(opened)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = ["quietcorpus", *request["arguments"]]
    main()


def serve() -> None:
    """Answer requests until there are no more; in a child, leave as the command itself would."""
    while line := sys.stdin.readline():
        pid = os.fork()
        if pid == 0:
            _become_the_command(json.loads(line))
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    serve()
