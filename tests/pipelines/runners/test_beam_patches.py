"""Beam's parts that are replaced during a run, and only then."""

from __future__ import annotations

from types import SimpleNamespace

import apache_beam as beam
import grpc
import pytest
from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions, TypeOptions
from apache_beam.runners.portability.fn_api_runner import fn_runner, worker_handlers
from apache_beam.transforms import userstate

from quietcorpus.pipelines.runners import beam_patches
from quietcorpus.pipelines.runners.beam_patches import (
    graphs_remembered,
    out_of_reach,
    progress_reported,
)
from quietcorpus.pipelines.terminal.observer import Observer
from quietcorpus.pipelines.terminal.progress import Steps

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


def test_options_are_looked_at_once() -> None:
    """Kills: a view of other options, or of another kind; a change that the others do not see."""
    usual = PipelineOptions.view_as
    first, second = (PipelineOptions([f"--direct_num_workers={number}"]) for number in (1, 2))
    with graphs_remembered():
        views = [one.view_as(DirectOptions) for one in (first, second, first)]
        assert [one.direct_num_workers for one in views] == [1, 2, 1]
        assert views[0] is views[2]
        assert first.view_as(TypeOptions).pipeline_type_check
        views[0].direct_num_workers = 3
        assert views[0].view_as(DirectOptions).direct_num_workers == 3
        assert second.view_as(DirectOptions).direct_num_workers == 2
    assert PipelineOptions.view_as is usual


class Counts(beam.DoFn):  # type: ignore[misc]
    """A function with a state."""

    TIMES = userstate.CombiningValueStateSpec("times", sum)

    def process(self, one: int, times: object = beam.DoFn.StateParam(TIMES)) -> list[int]:
        return [one]


class Passes(beam.DoFn):  # type: ignore[misc]
    """A function without one."""

    def process(self, one: int) -> list[int]:
        return [one]


def test_functions_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills: a function that is taken for another one, or for one that is gone."""
    usual = userstate.get_dofn_specs
    asked: list[object] = []

    def noted(function: object) -> object:
        asked.append(type(function))
        return usual(function)

    monkeypatch.setattr(userstate, "get_dofn_specs", noted)
    with graphs_remembered():
        for _ in range(3):  # a function that is gone may have had the place of the next one
            for kind in (Counts, Passes):
                function = kind()
                for _ in range(2):
                    assert userstate.is_stateful_dofn(function) == (kind is Counts)
                del function
    assert asked == [Counts, Passes] * 3
    assert userstate.get_dofn_specs is noted
