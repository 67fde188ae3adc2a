"""Forks the local workers of a command from a process that is as warm as the command was.

A worker that is started imports for four seconds what this has imported. It gets the environment
and the folder that it would have, and ends with its launcher.
"""

from __future__ import annotations

import json
import logging
import os
import select
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path

from quietcorpus.pipelines.engine.worker import main

_POLL_SECONDS = 1


def executable(folder: Path) -> Path:
    """Make the program in `folder` that stands in for the interpreter."""
    path = folder / "python"
    source = Path(__file__).with_name("worker_client.py").read_text()
    path.write_text(f"#!{sys.executable} -IS\n{source}")
    path.chmod(0o700)
    return path


def offer(program: Path) -> None:
    """Have this process start its workers by the program; it must have no threads yet."""
    listener = socket.socket(socket.AF_UNIX)
    name = f"forked-workers-{os.getpid()}"
    listener.bind("\0" + name)
    listener.listen()
    if os.fork() == 0:
        _serve(listener)
    listener.close()
    os.environ |= {"FORKED_WORKERS": name, "REAL_PYTHON": sys.executable}
    sys.executable = str(program)


def _serve(listener: socket.socket) -> None:
    """Fork workers while the command lives."""
    command = os.getppid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no worker is left as a zombie
    listener.settimeout(_POLL_SECONDS)
    while os.getppid() == command:
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            continue
        if os.fork() == 0:
            listener.close()
            _attend(connection)
        connection.close()
    os._exit(0)


def _attend(connection: socket.socket) -> None:
    """Fork a worker, and tell the client how it ended, or end it with the client."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with connection.makefile() as stream:
        request = json.loads(stream.readline())
    worker = os.fork()
    if worker == 0:
        connection.close()
        _work(**request)
    ended = os.pidfd_open(worker)
    ready, _, _ = select.select([ended, connection], [], [])
    if ended not in ready:
        os.kill(worker, signal.SIGKILL)
    _, status = os.waitpid(worker, 0)
    with suppress(OSError):  # the client is gone
        connection.sendall(b"%d" % os.waitstatus_to_exitcode(status))
    os._exit(0)


def _work(cwd: str, environment: dict[str, str]) -> None:
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    logging.root.handlers.clear()  # some library has set one up; a worker logs to its launcher
    sys.argv = ["worker"]
    main()
