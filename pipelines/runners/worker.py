"""A worker process: Beam's harness, which logs to its launcher alone.

The local engine starts it with its endpoints in the environment. A cluster's executors start it by
Beam's container contract, `quietcorpus-worker --id=... --provision_endpoint=...`, as the command of
a PROCESS environment: it asks that endpoint for the others, and needs no container.

The harness runs in a fork of a process that has imported it, or else in this process. With `serve`
and its launcher's process id as arguments, this process becomes that other one.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping

from quietcorpus.transforms.errors import keep_messages

from . import fork_server

_PATIENCE_SECONDS = 60
OWN = (
    "CONTROL_API_SERVICE_DESCRIPTOR",
    "KMP_DUPLICATE_LIB_OK",
    "KMP_INIT_AT_FORK",
    "LOGGING_API_SERVICE_DESCRIPTOR",
    "PIPELINE_OPTIONS",
    "QUIETCORPUS_MASTER_KEY",
    "TORCHINDUCTOR_CACHE_DIR",
    "WORKER_ID",
)
"""The variables that the local engine gives each worker, and that their server lacks.

They tell workers apart, or may be set when the server has started: the key, if it is drawn, and
what threadpoolctl, scikit-learn and PyTorch set in the launcher when they are imported there.
"""


def main() -> None:
    """Run the harness that the launcher's environment describes, while the launcher lives."""
    keep_messages()
    if sys.argv[1:2] == ["serve"]:
        fork_server.become(_harness(_describe), OWN, parent=int(sys.argv[2]))
    else:
        _work(_describe, {name: os.environ.get(name, "") for name in OWN})


def _describe(own: Mapping[str, str]) -> None:
    os.environ.update({name: value for name, value in own.items() if value})


def _harness(describe: Callable[[Mapping[str, str]], None]) -> fork_server.Work:
    """Return a harness, which `describe` puts into the environment."""

    def run(own: Mapping[str, str], parent: int) -> None:
        describe(own)
        _run(parent)

    return run


def _work(describe: Callable[[Mapping[str, str]], None], own: Mapping[str, str]) -> None:
    """Run a harness, which `describe` puts into the environment, while the parent lives."""
    run, parent = _harness(describe), os.getppid()  # read before it can die
    code = fork_server.run(run, own, parent)
    if code is not None:
        sys.exit(code)
    run(own, parent)


def _run(launcher: int) -> None:
    threading.Thread(target=_end_with, args=(launcher,), daemon=True).start()
    logging.basicConfig(handlers=[logging.NullHandler()])
    from apache_beam.runners.worker import sdk_worker_main

    from ..environment.store_clients import be_patient, change_clients, share_clients

    be_patient()
    share_clients()
    change_clients()
    # Beam prints the traceback of every failed bundle; the launcher gets the failure anyhow.
    sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    try:
        sdk_worker_main.main(sys.argv)
    finally:
        # An interrupted bundle may still be in compiled code. The interpreter's normal exit would
        # abort there, with a message; the launcher already knows how the bundle ended.
        os._exit(0)


def boot() -> None:
    """Run the harness that a cluster's executor asks for."""
    parser = argparse.ArgumentParser(prog="quietcorpus-worker", description=__doc__)
    parser.add_argument("--id", dest="worker", required=True)
    parser.add_argument("--provision_endpoint", dest="endpoint", required=True)
    given, _ = parser.parse_known_args()
    # Beam's Prism quotes the id for a shell, and calls none.
    own = {"worker": given.worker.strip("'"), "endpoint": given.endpoint}
    _work(lambda own: os.environ.update(provisioned(**own)), own)


def provisioned(worker: str, endpoint: str) -> dict[str, str]:
    """Return the environment that Beam's harness reads, as the executor at `endpoint` gives it."""
    import grpc
    from apache_beam.portability.api import (
        beam_provision_api_pb2,
        beam_provision_api_pb2_grpc,
        endpoints_pb2,
    )
    from google.protobuf import json_format, text_format

    with grpc.insecure_channel(endpoint) as channel:
        answer = beam_provision_api_pb2_grpc.ProvisionServiceStub(channel).GetProvisionInfo(
            beam_provision_api_pb2.GetProvisionInfoRequest(),
            metadata=(("worker_id", worker),),
            timeout=_PATIENCE_SECONDS,
            wait_for_ready=True,
        )

    def text(described: endpoints_pb2.ApiServiceDescriptor) -> str:
        return str(text_format.MessageToString(described))

    info = answer.info
    return {
        "WORKER_ID": worker,
        "PIPELINE_OPTIONS": json_format.MessageToJson(info.pipeline_options),
        "LOGGING_API_SERVICE_DESCRIPTOR": text(info.logging_endpoint),
        "CONTROL_API_SERVICE_DESCRIPTOR": text(info.control_endpoint),
        "RUNNER_CAPABILITIES": " ".join(info.runner_capabilities),
    }


def _end_with(launcher: int) -> None:
    """End with the launcher: alone, a harness may wait for minutes, with private text in memory."""
    while os.getppid() == launcher:
        time.sleep(1)
    os._exit(1)


if __name__ == "__main__":
    main()
