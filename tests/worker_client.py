"""Stands in for the interpreter that starts a local worker: asks `forked_workers.py` for a fork.

It lives as long as the worker does, and ends with its launcher; either end of the connection tells
the other. Whatever else it is asked to run, the interpreter itself runs.
"""

import json
import os
import socket
import sys

_POLL_SECONDS = 1
_WORKER = ["-P", "-m", "quietcorpus.pipelines.engine.worker"]


def main() -> None:
    """Wait for a worker that is forked, and return its exit code."""
    launcher = os.getppid()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect("\0" + os.environ["FORKED_WORKERS"])
        request = {"cwd": os.getcwd(), "environment": dict(os.environ)}
        connection.sendall(json.dumps(request).encode() + b"\n")
        connection.settimeout(_POLL_SECONDS)
        while os.getppid() == launcher:
            try:
                code = int(connection.recv(16) or b"1")
            except TimeoutError:
                continue
            sys.exit(code if code >= 0 else 128 - code)


if sys.argv[1:] == _WORKER and "FORKED_WORKERS" in os.environ:
    main()
else:
    os.execv(os.environ["REAL_PYTHON"], [os.environ["REAL_PYTHON"], *sys.argv[1:]])
