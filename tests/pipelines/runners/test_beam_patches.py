"""Beam's parts that are replaced during a run, and only then."""

from __future__ import annotations

from types import SimpleNamespace

import grpc
import pytest
from apache_beam.runners.portability.fn_api_runner import fn_runner, worker_handlers

from quietcorpus.pipelines.runners import beam_patches
from quietcorpus.pipelines.runners.beam_patches import (
    out_of_reach,
    progress_reported,
)
from quietcorpus.pipelines.terminal.progress import Observer, Steps

HANDLER = SimpleNamespace(control_conn=None, worker_id="worker")


def test_servers_are_out_of_reach_until_the_last_run_ends() -> None:
    # Kills: a run that ends and lets another thread's run open its servers to the network.
    first, second = out_of_reach(), out_of_reach()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert worker_handlers.grpc is not grpc
    second.__exit__(None, None, None)
    assert worker_handlers.grpc is grpc


def test_progress_is_asked_for_until_the_last_run_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    # Kills: the requester of a run that has ended, left in Beam by one that began after it.
    asked: list[object] = []
    own = fn_runner.ProgressRequester
    monkeypatch.setattr(own, "__init__", lambda _, *given: asked.append(given[-1]))
    observers = [Observer(1, Steps(1, bar=False)) for _ in range(2)]
    reported: list[int] = []
    for number, observer in enumerate(observers):
        monkeypatch.setattr(observer, "report", lambda *_, number=number: reported.append(number))
    monkeypatch.setattr(beam_patches, "_counters", lambda _: {})
    first, second = map(progress_reported, observers)

    def ask() -> None:
        fn_runner.ProgressRequester(HANDLER, "bundle", 0.5)
        asked[-1](None)  # type: ignore[operator]

    first.__enter__()
    ask()
    second.__enter__()
    ask()
    first.__exit__(None, None, None)
    ask()
    second.__exit__(None, None, None)
    assert reported == [0, 1, 1]
    assert fn_runner.ProgressRequester is own
