"""Beam's parts that are replaced during a run, and only then."""

from __future__ import annotations

from types import SimpleNamespace

import apache_beam as beam
import grpc
import pytest
from apache_beam.coders import VarIntCoder
from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions, StandardOptions
from apache_beam.runners.portability.fn_api_runner import fn_runner, worker_handlers
from apache_beam.transforms import userstate
from apache_beam.transforms.core import CallableWrapperDoFn
from apache_beam.transforms.timeutil import TimeDomain

from quietcorpus.pipelines.runners import beam_patches
from quietcorpus.pipelines.runners.beam_patches import (
    out_of_reach,
    progress_reported,
)
from quietcorpus.pipelines.terminal.progress import Observer, Steps

SPEC = userstate.ReadModifyWriteStateSpec("state", VarIntCoder())
TIMER = userstate.TimerSpec("timer", TimeDomain.WATERMARK)
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


class Stateful(beam.DoFn):
    """A DoFn with a state and a timer."""

    def process(
        self,
        element: object,
        state: object = beam.DoFn.StateParam(SPEC),
        timer: object = beam.DoFn.TimerParam(TIMER),
    ) -> None:
        """Do nothing."""


class Plain(beam.DoFn):
    """A DoFn with neither."""

    def process(self, element: object, number: int = 1) -> None:
        """Do nothing."""


def test_what_is_read_once_is_what_was_read_each_time() -> None:
    # Kills: states of one DoFn taken for another's, or a wrapped function's for all functions';
    # sets and options that runs share after their end.
    def wrapped(element: object, state: object = beam.DoFn.StateParam(SPEC)) -> object:
        return element

    made = [Stateful(), Plain(), CallableWrapperDoFn(str), CallableWrapperDoFn(wrapped)]
    made += [CallableWrapperDoFn(Plain().process), CallableWrapperDoFn(Stateful().process)]
    usual_specs, usual_view = userstate.get_dofn_specs, PipelineOptions.view_as
    usual = [usual_specs(one) for one in made]
    options = PipelineOptions(["--direct_num_workers=2"])
    other = PipelineOptions([])
    with beam_patches.looked_once():
        for _ in range(2):
            assert [userstate.get_dofn_specs(one) for one in made] == usual
            userstate.get_dofn_specs(made[0])[0].clear()
        view = options.view_as(DirectOptions)
        view.direct_num_workers = 3
        assert options.view_as(StandardOptions).view_as(DirectOptions).direct_num_workers == 3
        assert options.get_all_options()["direct_num_workers"] == 3
        assert other.view_as(DirectOptions).direct_num_workers == 1
    assert (userstate.get_dofn_specs, PipelineOptions.view_as) == (usual_specs, usual_view)
