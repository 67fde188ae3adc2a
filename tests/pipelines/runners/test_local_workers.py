"""The server of a run's workers starts ahead of them, in their environment, but without a key."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from machine import wait_until

import quietcorpus as qc
from quietcorpus.pipelines.environment import keys
from quietcorpus.pipelines.runners import local_workers, worker

PATIENCE_SECONDS = 120
# Stands for the server: it writes what it is, and ends as its launcher needs it no more.
SERVER = """
import json, os, sys
told = {"environment": dict(os.environ), "arguments": sys.argv[2:]}
with open(sys.argv[1] + ".new", "w") as stream:
    json.dump(told, stream)
os.rename(sys.argv[1] + ".new", sys.argv[1])
sys.stdin.read()
"""


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that a server writes."""
    file = tmp_path / "told"
    stands_for = shlex.join([sys.executable, "-c", SERVER, str(file)])
    monkeypatch.setattr(local_workers, "command", lambda workers: f"exec {stands_for} {workers}")
    return file


def test_a_server_ahead(told: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills: a key in a process that may not need it; an environment that is not the workers', so
    that they would not take its forks; another launcher's server; one that is left behind.
    """
    monkeypatch.setenv(keys.VARIABLE, "xylocanary")
    monkeypatch.setenv("OWN", "1")
    monkeypatch.delenv("AWS_MAX_ATTEMPTS", raising=False)
    before = {one.pid for one in psutil.Process().children()}
    with local_workers.server_ahead(3, ()):
        wait_until(told.exists, PATIENCE_SECONDS)
        (server,) = {one.pid for one in psutil.Process().children()} - before
    wait_until(lambda: not psutil.pid_exists(server), PATIENCE_SECONDS)
    found = json.loads(told.read_text())
    assert found["arguments"] == ["3", "serve", str(os.getpid())]
    assert found["environment"].items() >= {"OWN": "1", "AWS_MAX_ATTEMPTS": "10"}.items()
    assert keys.VARIABLE not in found["environment"]


def test_a_server_of_a_refused_run(told: Path) -> None:
    """Kills: a server that outlives what it was started for."""
    before = {one.pid for one in psutil.Process().children()}

    def left() -> set[int]:
        return {one.pid for one in psutil.Process().children()} - before

    with suppress(ValueError), local_workers.server_ahead(2, ()):
        assert left()
        raise ValueError("refused")
    wait_until(lambda: not left(), PATIENCE_SECONDS)


def test_a_release_has_a_server_ahead(told: Path) -> None:
    """Kills: a release whose workers import once it has prepared."""
    with pytest.raises(qc.InputError):
        qc.release({"release": "refused"}, workers=2)
    wait_until(told.exists, PATIENCE_SECONDS)


# Prints what the command has imported of the engine when it starts the server.
COMMAND = """
import os, sys
from quietcorpus.cli.main import main
from quietcorpus.pipelines.runners import local_workers
def server_ahead(*_):
    print(*{"apache_beam", "numba", "pyarrow"} & {*sys.modules}, flush=True)
    os._exit(0)
local_workers.server_ahead = server_ahead
main(["release", "spec.yaml", "--workers", "2"])
"""


def test_a_command_imports_no_engine_before() -> None:
    """Kills: a command that imports the engine first, so that workers import when it has done so.

    The exit code tells that it came to the server.
    """
    said = subprocess.check_output([sys.executable, "-P", "-c", COMMAND], text=True)
    assert said == "\n"


@pytest.mark.parametrize(
    ("workers", "options"), [(1, ()), (2, ["--runner=SparkRunner"]), (2, ["--runner", "Spark"])]
)
def test_no_server_for_nobody(told: Path, workers: int, options: Sequence[str]) -> None:
    """Kills: a process that imports for workers that are elsewhere, or that there are none of."""
    before = len(psutil.Process().children())
    with local_workers.server_ahead(workers, options):
        assert len(psutil.Process().children()) == before


def test_the_key_is_a_workers_own() -> None:
    """Kills: a key by an old name, which a server would keep, or which would not reach a worker."""
    assert keys.VARIABLE in worker.OWN


# Prints which variables the launcher's libraries set as they are imported.
LIBRARIES = """
import os
before = dict(os.environ)
from quietcorpus.pipelines import registry
for kind in registry.names():
    registry.part(kind, "resolve")
import sklearn, torch
print(*{name for name, value in os.environ.items() if before.get(name) != value})
"""


@pytest.mark.slow
def test_what_libraries_set_is_a_workers_own() -> None:
    """Kills: workers that find another environment than their server had, and import anew."""
    clean = {name: value for name, value in os.environ.items() if name not in worker.OWN}
    said = subprocess.check_output([sys.executable, "-P", "-c", LIBRARIES], env=clean, text=True)
    assert {"KMP_DUPLICATE_LIB_OK"} <= {*said.split()} <= {*worker.OWN}
