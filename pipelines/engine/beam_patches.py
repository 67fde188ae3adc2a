"""The private parts of Beam that are called, subclassed or replaced, each with the reason.

Beam promises nothing about them: review this module when Beam's version changes. The sources named
are those of apache-beam 2.77. `quietcorpus.pipelines.storage.stores`, in a lower layer, reads one
more private name.
"""

from __future__ import annotations

import logging
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import grpc
from apache_beam.metrics import monitoring_infos
from apache_beam.options.pipeline_options import PipelineOptions, _BeamArgumentParser
from apache_beam.portability.api import beam_fn_api_pb2, beam_provision_api_pb2
from apache_beam.runners.portability import local_job_service
from apache_beam.runners.portability.fn_api_runner import fn_runner, worker_handlers
from apache_beam.runners.portability.portable_runner import JobServiceHandle
from apache_beam.runners.worker import worker_pool_main

from quietcorpus.pipelines.terminal.duration import duration
from quietcorpus.pipelines.terminal.observer import Observer
from quietcorpus.transforms.metrics import NAMESPACE
from quietcorpus.transforms.temporary import Temporary

_LOGGER = logging.getLogger("quietcorpus.engine")

WORKER_LOST = "Channel closed prematurely"
"""The message by which the local engine fails once it lost the connection to a worker process
(`input_elements`, apache_beam/runners/worker/data_plane.py), and by our own doing (`_Answering`)
for one that is gone and had no connection yet."""


def parser() -> _BeamArgumentParser:
    """Build the parser of all of Beam's options, which finds those that are unknown.

    `PipelineOptions` does not refuse them; at best it logs a warning
    (https://github.com/apache/beam/issues/28402).
    """
    found = _BeamArgumentParser(allow_abbrev=False, exit_on_error=False)
    for options in PipelineOptions.__subclasses__():
        options._add_argparse_args(found)
    return found


def provision_info(options: PipelineOptions) -> fn_runner.ExtendedProvisionInfo:
    """Return the provision info by which worker processes learn the options.

    `FnApiRunner.__init__` (fn_runner.py) makes one without options otherwise, and workers would
    lack the credentials of object stores.
    """
    encoded = JobServiceHandle.encode_pipeline_options(options.get_all_options(drop_default=True))
    return fn_runner.ExtendedProvisionInfo(
        beam_provision_api_pb2.ProvisionInfo(pipeline_options=encoded)
    )


SILENT_SECONDS = 600.0
"""A worker process that does not answer for so long is ended. A thread of its own answers, so that
a worker is silent only if all of it hangs, as one that is suspended, and not one that has much to
do."""
_LOOKS = 120  # of which a launcher that was suspended itself loses one
_observers: list[Observer] = []
_processes: dict[str, subprocess.Popen[bytes]] = {}


class _Answering:
    """The control connection of a worker process, whose bundle fails once the process is gone.

    A process that does not answer is ended.
    """

    def __init__(self, handler: Any, bundle: str) -> None:
        self._connection, self._bundle = handler.control_conn, bundle
        self._worker = handler.worker_id

    @property
    def control_conn(self) -> _Answering:
        return self

    def push(self, request: Any) -> _Answering:
        self._answer = self._connection.push(request)
        return self

    def get(self) -> Any:
        for _ in range(_LOOKS):
            with suppress(AssertionError):  # how `ControlFuture.get` ends if there is none yet
                return self._answer.get(SILENT_SECONDS / _LOOKS)
            process = _processes.get(self._worker)  # none while it is being started
            if process is not None and process.poll() is not None:
                break
        else:
            said = duration(SILENT_SECONDS)
            _LOGGER.warning("a worker did not answer for %s, and is ended", said)
            if process is not None:
                process.kill()
        self._fail()
        raise RuntimeError(WORKER_LOST)

    def _fail(self) -> None:
        """Have the bundle fail that would wait for ever for a process that has not connected."""
        waiting = self._connection._futures_by_id.get(self._bundle)
        if waiting is not None and not waiting.is_done():
            waiting.set(
                beam_fn_api_pb2.InstructionResponse(instruction_id=self._bundle, error=WORKER_LOST)
            )


class _Subprocess:
    """A stand-in for `subprocess` that notes which process is which worker."""

    def __getattr__(self, name: str) -> Any:
        return getattr(subprocess, name)

    @staticmethod
    def Popen(*args: Any, **kwargs: Any) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(*args, **kwargs)  # noqa: S603
        _processes[kwargs["env"]["WORKER_ID"]] = process
        return process


class _Requester(fn_runner.ProgressRequester):  # type: ignore[misc]
    """A requester that reports to the observer of the run that began last."""

    def __init__(self, handler: Any, bundle: str, frequency: float, *_: Any) -> None:
        observer = _observers[-1]
        super().__init__(
            _Answering(handler, bundle),
            bundle,
            frequency,
            lambda progress: observer.report(bundle, _counters(progress)),
        )


def _patch_requester() -> Callable[[], None]:
    original = fn_runner.ProgressRequester
    fn_runner.ProgressRequester = _Requester
    local_job_service.subprocess = _Subprocess()

    def undo() -> None:
        fn_runner.ProgressRequester = original
        local_job_service.subprocess = subprocess
        _processes.clear()

    return undo


_requester_patched = Temporary(_patch_requester)


@contextmanager
def progress_reported(observer: Observer) -> Iterator[None]:
    """Report the progress of every bundle in a worker process to the observer; end a silent one.

    `BundleManager.process_bundle` (fn_runner.py) asks workers for their progress, but passes no
    callback, and has no option for one. In this process a bundle ends before Beam first asks, so
    its counters report themselves (`transforms.metrics.watched`). Beam would wait for ever for a
    worker that is silent, and `SubprocessSdkWorker.run` (local_job_service.py) tells nobody which
    process it has started for which worker.
    """
    _observers.append(observer)
    try:
        with _requester_patched():
            yield
    finally:
        _observers.remove(observer)


def _counters(progress: Any) -> dict[str, int]:
    counters = {}
    for info in progress.monitoring_infos:
        if monitoring_infos.is_user_monitoring_info(info) and monitoring_infos.is_counter(info):
            namespace, name = monitoring_infos.parse_namespace_and_name(info)
            if namespace == NAMESPACE:
                counters[name] = int(monitoring_infos.extract_counter_value(info))
    return counters


class _Loopback:
    """A stand-in for `grpc` with another address for new servers."""

    def __getattr__(self, name: str) -> Any:
        return getattr(grpc, name)

    @staticmethod
    def server(*args: Any, **kwargs: Any) -> grpc.Server:
        server = grpc.server(*args, **kwargs)
        bind = server.add_insecure_port
        server.add_insecure_port = lambda address: bind(address.replace("[::]", "localhost"))
        return server


def _patch_grpc() -> Callable[[], None]:
    modules = (worker_handlers, local_job_service, worker_pool_main)
    for module in modules:
        module.grpc = _Loopback()

    def undo() -> None:
        for module in modules:
            module.grpc = grpc

    return undo


on_loopback = Temporary(_patch_grpc)
"""Bind the servers of local worker processes to this machine's loopback interface alone.

Beam binds them to every interface, without authentication, and private text passes through them.
The address "[::]" is fixed in `GrpcServer.__init__` (worker_handlers.py), `SubprocessSdkWorker.run`
(local_job_service.py) and `BeamFnExternalWorkerPoolServicer.start` (worker_pool_main.py), so `grpc`
is replaced in these modules.
"""
