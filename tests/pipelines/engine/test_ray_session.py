"""A Ray session leaves the caller's process as it was."""

from __future__ import annotations

import os
import signal
import tempfile

import pytest

from quietcorpus.pipelines.engine.ray_session import ray_session


def test_a_session_changes_neither_the_environment_nor_the_signals(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Kills: settings of Ray's that a caller's own Ray, or the caller's children, would inherit.
    with tempfile.TemporaryDirectory(prefix="qcr") as folder:
        monkeypatch.setenv("RAY_TMPDIR", folder)
        before, handler = dict(os.environ), signal.getsignal(signal.SIGTERM)
        with ray_session(1, private=True) as ray:
            assert ray.get(ray.remote(lambda: [os.getpid()]).remote()) != [os.getpid()]
            assert dict(os.environ) == before
    assert dict(os.environ) == before
    assert signal.getsignal(signal.SIGTERM) == handler
