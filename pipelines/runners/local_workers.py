"""The worker processes of the local engine: their command, and their server, ahead of them.

The server imports for seconds, as the launcher does. Started first, it does so on another core.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ..environment.store_clients import be_patient
from .worker import OWN


def command(workers: int) -> str:
    """Return the shell's command that starts one of `workers` workers."""
    # A terminal sends Ctrl-C to workers too; the launcher alone acts on it, and ends them.
    return (
        f"trap '' INT; {_threads(workers)} exec {shlex.quote(sys.executable)} "
        "-P -m quietcorpus.pipelines.runners.worker"
    )


def _threads(workers: int) -> str:
    """Return the setting of a worker's share of the cores for linear algebra, unless one is set."""
    share = max(1, (os.cpu_count() or 1) // workers)
    return f"OPENBLAS_NUM_THREADS=${{OPENBLAS_NUM_THREADS:-{share}}}"


@contextmanager
def server_ahead(workers: int, beam_options: Sequence[str]) -> Iterator[None]:
    """Have the server of a run's workers import meanwhile, if the local engine will have any.

    It is the one that they would start, unless a variable of the environment has changed by then.
    It ends with the context, once it has no worker, or with this process. It does not have the key.
    """
    remote = any(option.startswith("--runner") for option in beam_options)
    if workers < 2 or remote or sys.platform != "linux" or os.getpid() == 1:
        yield
        return
    environment = {name: value for name, value in os.environ.items() if name not in OWN}
    be_patient(environment)  # as the launcher will be
    server = subprocess.Popen(  # noqa: S603
        ["/bin/sh", "-c", f"{command(workers)} serve {os.getpid()}"],  # as Beam starts workers
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    assert server.stdin is not None
    threading.Thread(target=server.wait, daemon=True).start()  # or it would stay as a zombie
    with server.stdin:
        yield
