"""The private parts of Beam that are called, subclassed or replaced, each with the reason.

Beam promises nothing about them: review this module when Beam's version changes. The sources named
are those of apache-beam 2.77. `quietcorpus.pipelines.storage.stores`, in a lower layer, reads one
more private name.
"""

from __future__ import annotations

import itertools
import logging
import os
import shutil
import subprocess
import tempfile
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
from apache_beam.transforms import userstate
from apache_beam.transforms.core import CallableWrapperDoFn

from quietcorpus.transforms.metrics import NAMESPACE
from quietcorpus.transforms.threads import Temporary

from ..terminal.progress import Observer, duration

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


def _patch_looks() -> Callable[[], None]:
    usual_specs, usual_view = userstate.get_dofn_specs, PipelineOptions.view_as
    specs: dict[type, tuple[set[Any], set[Any]]] = {}
    views: dict[tuple[int, type], PipelineOptions] = {}

    def get_dofn_specs(dofn: Any) -> tuple[set[Any], set[Any]]:
        kind = type(dofn)
        if kind is CallableWrapperDoFn and _has_defaults(dofn._fn):
            found: tuple[set[Any], set[Any]] = usual_specs(dofn)
            return found
        if kind not in specs:
            specs[kind] = usual_specs(dofn)
        states, timers = specs[kind]
        return set(states), set(timers)

    def view_as(self: PipelineOptions, kind: type[PipelineOptions]) -> PipelineOptions:
        key = id(self._all_options), kind  # which its views share, and keep
        if key not in views:
            views[key] = usual_view(self, kind)
        return views[key]

    userstate.get_dofn_specs, PipelineOptions.view_as = get_dofn_specs, view_as

    def undo() -> None:
        userstate.get_dofn_specs, PipelineOptions.view_as = usual_specs, usual_view

    return undo


def _has_defaults(function: Any) -> bool:
    """Return whether a function may have parameters of Beam's, which are defaults."""
    own = getattr(function, "__defaults__", True), getattr(function, "__kwdefaults__", True)
    return own != (None, None)


looked_once = Temporary(_patch_looks)
"""Read the methods of a DoFn once for each class, and options once for each group of them.

`get_dofn_specs` (userstate.py) looks for states and timers in the defaults of every method, some
ten times for each step of a graph, and `PipelineOptions.view_as` (pipeline_options.py) builds a
parser of arguments for each of some 250 looks at an option: together a seventh of the processor
time of a small run. States and timers are those of a class, but for a wrapped function's.
"""


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
"""A worker process that does not answer for so long is ended. A separate thread answers, so that
a worker is silent only if all of it hangs, as one that is suspended, and not one that has much to
do."""
_LOOKS = 120  # of which a launcher that was suspended itself loses one
_SOCKETS = "quietcorpus-"
_LONGEST = 90  # an address of a Unix socket has 107 bytes at most
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

    def undo() -> None:
        fn_runner.ProgressRequester = original

    return undo


_requester_patched = Temporary(_patch_requester)


@contextmanager
def progress_reported(observer: Observer) -> Iterator[None]:
    """Report the progress of every bundle in a worker process to the observer; end a silent one.

    `BundleManager.process_bundle` (fn_runner.py) asks workers for their progress, but passes no
    callback, and has no option for one. In this process a bundle ends before Beam first asks, so
    its counters report themselves (`transforms.metrics.watched`). Beam would wait for ever for a
    worker that is silent.
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
    """A stand-in for `grpc` whose new servers listen at this machine's loopback interface alone."""

    def __getattr__(self, name: str) -> Any:
        return getattr(grpc, name)

    def server(self, *args: Any, **kwargs: Any) -> grpc.Server:
        server = grpc.server(*args, **kwargs)
        bind = server.add_insecure_port
        server.add_insecure_port = lambda address: self._bind(bind, address)
        return server

    def _bind(self, bind: Callable[[str], int], address: str) -> int:
        return bind(address.replace("[::]", "localhost"))


class _Sockets(_Loopback):
    """A stand-in for `grpc` whose new servers listen at Unix sockets, each with a different number.

    They lie in a folder that no other user can enter.
    """

    def __init__(self) -> None:
        folder = tempfile.mkdtemp(prefix=_SOCKETS)
        if len(folder) > _LONGEST:
            os.rmdir(folder)
            folder = tempfile.mkdtemp(prefix=_SOCKETS, dir="/tmp")
        self.folder = folder
        self._numbers = itertools.count(1)

    def address(self, number: int | str) -> str:
        return f"unix:{self.folder}/{number}"

    def _bind(self, bind: Callable[[str], int], address: str) -> int:
        if address != "[::]:0":  # of the job service, which has a separate address
            return super()._bind(bind, address)
        number = next(self._numbers)
        bind(self.address(number))
        return number


class _Subprocess:
    """A stand-in for `subprocess`, by which workers find the sockets; it notes who is who."""

    def __init__(self, sockets: _Sockets) -> None:
        self._sockets = sockets

    def __getattr__(self, name: str) -> Any:
        return getattr(subprocess, name)

    def Popen(self, *args: Any, **kwargs: Any) -> subprocess.Popen[bytes]:
        environment = kwargs["env"]
        logs = environment["LOGGING_API_SERVICE_DESCRIPTOR"]
        environment["LOGGING_API_SERVICE_DESCRIPTOR"] = logs.replace(
            "localhost:", self._sockets.address("")
        )
        process = subprocess.Popen(*args, **kwargs)  # noqa: S603
        _processes[environment["WORKER_ID"]] = process
        return process


def _patch_servers() -> Callable[[], None]:
    sockets = _Sockets()
    address = worker_handlers.GrpcWorkerHandler.port_from_worker
    worker_handlers.grpc = local_job_service.grpc = sockets
    worker_handlers.GrpcWorkerHandler.port_from_worker = lambda _, number: sockets.address(number)
    local_job_service.subprocess = _Subprocess(sockets)
    worker_pool_main.grpc = _Loopback()

    def undo() -> None:
        worker_handlers.grpc = local_job_service.grpc = worker_pool_main.grpc = grpc
        worker_handlers.GrpcWorkerHandler.port_from_worker = address
        local_job_service.subprocess = subprocess
        _processes.clear()
        shutil.rmtree(sockets.folder, ignore_errors=True)

    return undo


out_of_reach = Temporary(_patch_servers)
"""Keep the servers of worker processes out of the reach of others.

Beam binds them to every interface, without authentication: private text passes through them, and
any process that reaches them can run code as this user. Those of the local engine listen at Unix
sockets, which no other user can reach. A cluster's runner reaches those of the launcher by the
loopback interface.

The address "[::]" is fixed in `GrpcServer.__init__` (worker_handlers.py), `SubprocessSdkWorker.run`
(local_job_service.py) and `BeamFnExternalWorkerPoolServicer.start` (worker_pool_main.py), so `grpc`
is replaced in these modules. The second of them has "localhost:" in its descriptor of the logging
server, and does not report which process it has started for which worker.
"""
