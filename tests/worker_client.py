"""Stands in for the interpreter that starts a local worker: asks `forked_workers.py` for a fork.

It lives as long as the worker does, and ends with its launcher; either end of the connection tells
the other. Whatever else it is asked to run, the interpreter itself runs.
"""

import hashlib
import json
import os
import socket
import sys

_POLL_SECONDS = 1
_WORKER = ["-P", "-m", "quietcorpus.pipelines.runners.worker"]


def main() -> None:
    """Wait for a worker that is forked, and return its exit code."""
    launcher = os.getppid()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.connect("\0" + os.environ["FORKED_WORKERS"])
        own = dict(os.environ, FORKED_IN=os.getcwd())
        request = {"own": own, "shared": hashlib.sha256(b"{}").hexdigest()}  # all is its own
        socket.send_fds(connection, [json.dumps(request).encode()], [1, 2])
        connection.settimeout(_POLL_SECONDS)
        while os.getppid() == launcher:
            try:
                answer = connection.recv(16)
            except TimeoutError:
                continue
            if answer != b"+":  # which says that it has begun
                sys.exit(int(answer or b"1"))


if sys.argv[1:4] == _WORKER and "FORKED_WORKERS" in os.environ:
    if not sys.argv[4:]:  # the server that others would start ahead of it is there already
        main()
else:
    os.execv(os.environ["REAL_PYTHON"], [os.environ["REAL_PYTHON"], *sys.argv[1:]])
