"""Forks the local workers of a command from a process that is as warm as the command was.

The workers' own server would import, for each command anew, what this has imported.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
from collections.abc import Mapping
from pathlib import Path

from quietcorpus.pipelines.runners.fork_server import _Server, _Sources
from quietcorpus.pipelines.runners.worker import _run


def executable(folder: Path) -> Path:
    """Make the program in `folder` that stands in for the interpreter."""
    path = folder / "python"
    source = Path(__file__).with_name("worker_client.py").read_text()
    path.write_text(f"#!{sys.executable} -IS\n{source}")
    path.chmod(0o700)
    return path


def offer(program: Path) -> None:
    """Have this process start its workers by the program; it must have no threads yet."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    name = f"forked-workers-{os.getpid()}"
    listener.bind("\0" + name)
    listener.listen()
    command = os.pidfd_open(os.getpid())
    if os.fork() == 0:
        interrupted = signal.signal(signal.SIGINT, signal.SIG_IGN)
        sources = _Sources(listener, command, None)
        _Server(sources, _work, os.getppid(), interrupted).serve()
        os._exit(0)
    os.close(command)
    listener.close()
    os.environ |= {"FORKED_WORKERS": name, "REAL_PYTHON": sys.executable}
    sys.executable = str(program)


def _work(environment: Mapping[str, str], server: int) -> None:
    os.chdir(environment["FORKED_IN"])
    os.environ.clear()
    os.environ.update(environment)
    logging.root.handlers.clear()  # some library has set one up; a worker logs to its launcher
    sys.argv = ["worker"]
    _run(server)
