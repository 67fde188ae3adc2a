"""The client of `command_server.py`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path


class CommandServer:
    """Runs commands in forks of a process that is warm.

    One of an environment of its own imports nothing but the modules named.
    """

    def __init__(self, environment: Mapping[str, str] | None = None, *modules: str) -> None:
        self._folder = tempfile.TemporaryDirectory()
        server = str(Path(__file__).with_name("command_server.py"))
        self._process = subprocess.Popen(
            # Without this folder on its path: a command has no helpers of tests.
            [sys.executable, "-P", server, self._folder.name, *modules],
            # What comes too late for a command: libraries read it as they are loaded. The first is
            # what `forget_grpc` sets; and no command may ask a hub of models.
            env=os.environ
            | {"GRPC_ENABLE_FORK_SUPPORT": "false", "HF_HUB_OFFLINE": "1"}
            | (environment or {}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(
        self,
        arguments: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        code: str | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run one command to its end, or this code in its place."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with (
            tempfile.NamedTemporaryFile() as out,
            tempfile.NamedTemporaryFile() as err,
        ):
            request = {
                "arguments": arguments,
                "code": code,
                "cwd": str(folder),
                "environment": dict(environment),
                "stdout": out.name,
                "stderr": err.name,
            }
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            code = int(self._process.stdout.readline())
            texts = (Path(file.name).read_text() for file in (out, err))
            return subprocess.CompletedProcess([*arguments], code, *texts)

    def close(self) -> None:
        """End the server."""
        with self._process:
            self._process.kill()
        self._folder.cleanup()
