"""A Ray session leaves the caller's process as it was."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from quietcorpus.pipelines.runners.parallel import _start_patiently, ray_session
from quietcorpus.transforms.errors import InputError, StageError


@pytest.mark.slow
def test_a_session_changes_neither_the_environment_nor_the_signals(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Kills: settings of Ray's that a caller's own Ray, or the caller's children, would inherit.
    with tempfile.TemporaryDirectory(prefix="qcr") as folder:
        monkeypatch.setenv("RAY_TMPDIR", folder)
        before, handler = dict(os.environ), signal.getsignal(signal.SIGTERM)
        with ray_session(1, work="test", private=True) as ray:
            assert ray.get(ray.remote(lambda: [os.getpid()]).remote()) != [os.getpid()]
            assert dict(os.environ) == before
    assert dict(os.environ) == before
    assert signal.getsignal(signal.SIGTERM) == handler


# What a process without our token finds.
CONNECT = "import ray, sys; ray.init(sys.argv[1], logging_level='ERROR'); print('connected')"


class BusyRay:
    """Ray on a machine that is too busy for it for a while; a stub, as no load is as sure."""

    def __init__(self, failures: int, message: str) -> None:
        self.failures, self.message, self.calls = failures, message, list[str]()

    def init(self, address: str, **_: object) -> None:
        self.calls.append(address)
        if len([call for call in self.calls if call == address]) <= self.failures:
            raise Exception(self.message)  # as Ray does

    def shutdown(self) -> None:
        self.calls.append("shutdown")


BUSY = "The current node timed out during startup. This could happen because some of the raylet"


def test_a_busy_machine_starts_ray_later() -> None:
    # Kills: "unexpected Exception" of a machine that needs more than Ray's 30 seconds; a start
    # beside what is left of the one before; another fault that is tried again.
    ray = BusyRay(2, BUSY)
    _start_patiently(ray, num_cpus=1)
    assert ray.calls == ["local", "shutdown", "local", "shutdown", "local"]
    with pytest.raises(StageError, match="the machine is too busy, or has too little memory"):
        _start_patiently(BusyRay(9, BUSY))
    other = BusyRay(9, "another fault")
    with pytest.raises(Exception, match="another fault"):
        _start_patiently(other)
    assert other.calls == ["local"]


@pytest.mark.slow
def test_nobody_else_reaches_a_session(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # Kills: a version, or a setting, of Ray's with which other machines may run code here.
    with tempfile.TemporaryDirectory(prefix="qcr") as folder:
        monkeypatch.setenv("RAY_TMPDIR", folder)
        with ray_session(1, work="test") as ray:
            address = ray.get_runtime_context().gcs_address
            command = [sys.executable, "-c", CONNECT, address]
            for home, outcome in ((str(tmp_path), ""), (os.environ["HOME"], "connected\n")):
                environment = os.environ | {"HOME": home, "RAY_AUTH_MODE": "token"}
                done = subprocess.run(
                    command, env=environment, capture_output=True, text=True, check=False
                )
                assert done.stdout == outcome, done.stderr


def test_a_session_without_tokens_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    # Kills: a setting for another Ray that opens ours.
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    with pytest.raises(InputError, match=r"^RAY_AUTH_MODE: "), ray_session(1, work="test"):
        pass


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "error", "message"),
    [
        ("refuse", InputError, "a mistake"),
        (
            "die",
            StageError,
            "a worker of the test was killed or had too little memory; run it again",
        ),
    ],
)
def test_errors_of_workers(
    monkeypatch: pytest.MonkeyPatch, method: str, error: type[Exception], message: str
) -> None:
    # Kills: Ray's own errors, with their tracebacks, in place of what a person can fix.
    class Worker:  # in a function, so that Ray sends it whole
        def refuse(self) -> None:
            raise InputError("a mistake")

        def die(self) -> None:
            os._exit(1)

    with tempfile.TemporaryDirectory(prefix="qcr") as folder:
        monkeypatch.setenv("RAY_TMPDIR", folder)
        with (
            pytest.raises(error) as raised,
            ray_session(1, work="test", private=True) as ray,
        ):
            ray.get(getattr(ray.remote(Worker).remote(), method).remote())
    assert type(raised.value) is error
    assert str(raised.value) == message
