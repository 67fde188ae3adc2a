"""The settings of a process that calls of the API restore, and a program that compares them.

    python process_settings.py CALLS

CALLS is JSON: `imported`, modules that are loaded first, since their import changes settings too;
and `calls`, a list of functions' names and keyword arguments. The program prints, as JSON, each
setting that has another value after all calls, and the messages of calls that were refused.
"""

from __future__ import annotations

import faulthandler
import importlib
import json
import locale
import logging
import multiprocessing
import operator
import os
import signal
import subprocess
import sys
import threading
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from conftest import Workspace

_BEAM = "apache_beam.runners."
_GRPC = (
    f"{_BEAM}portability.fn_api_runner.worker_handlers",
    f"{_BEAM}portability.local_job_service",
    f"{_BEAM}worker.worker_pool_main",
)
_RUNNER = f"{_BEAM}portability.fn_api_runner.fn_runner"
OF_ENCODERS = "transformers.utils.logging"
_THREADS = 3


def settings(imported: list[str]) -> dict[str, str]:
    """Return this process's settings, and those of modules that are imported, by name."""
    root = logging.getLogger()
    mask = os.umask(0)
    os.umask(mask)
    found: dict[str, Any] = {
        "the root logger": (root.handlers, root.filters, root.level, logging.root.manager.disable),
        "signals": [(number, signal.getsignal(number)) for number in signal.valid_signals()],
        "hooks": (sys.excepthook, sys.unraisablehook, threading.excepthook),
        "the start method": multiprocessing.get_start_method(allow_none=True),
        "faulthandler": faulthandler.is_enabled(),
        "the locale": locale.setlocale(locale.LC_ALL),
        "the folder and mask": (os.getcwd(), mask),
        "standard streams": (sys.stdin, sys.stdout, sys.stderr),
        "Beam's options": _beams_options(),
        "Beam's modules": [_is_own(name, "grpc") for name in _GRPC] + [_is_own(_RUNNER, "fn_api")],
    }
    found |= {f"environment: {name}": value for name, value in os.environ.items()}
    if "apache_beam" in imported:  # many a library that it loads adds one
        found["filters of warnings"] = warnings.filters
        found["loggers"] = {
            name: (logger.level, logger.handlers, logger.propagate, logger.disabled)
            for name, logger in logging.root.manager.loggerDict.items()
            if isinstance(logger, logging.Logger)
            and (logger.level or logger.handlers or logger.disabled or not logger.propagate)
        }
    if "torch" in imported:
        import torch

        found["PyTorch"] = (
            torch.get_num_threads(),
            torch.are_deterministic_algorithms_enabled(),
            torch.get_default_dtype(),
            torch.is_grad_enabled(),
            hash(bytes(torch.random.get_rng_state().numpy())),
        )
    if "ray" in imported:
        import ray

        found["Ray"] = (ray.is_initialized(), logging.getLogger("ray").level)
    if OF_ENCODERS in imported:
        from transformers.utils import logging as noise

        found["transformers"] = (noise.get_verbosity(), noise.is_progress_bar_enabled())
    return {name: repr(value) for name, value in found.items()}


def _beams_options() -> Any:
    beam = sys.modules.get("apache_beam.io.filesystems")
    return beam.FileSystems._pipeline_options if beam else None


def _is_own(module: str, name: str) -> bool:
    """Return whether a module of Beam's still has its own part of this name, or is not loaded."""
    loaded = sys.modules.get(module)
    if loaded is None:
        return True
    part = loaded.ProgressRequester if name == "fn_api" else getattr(loaded, name)
    return getattr(part, "__module__", getattr(part, "__name__", "")) in (name, module)


def changed(
    workspace: Workspace,
    *calls: tuple[str, dict[str, Any]],
    imported: tuple[str, ...] = (),
    environment: dict[str, str | None] | None = None,
) -> dict[str, Any]:
    """Run the program in a workspace; return what it prints, `settings` and `refusals`."""
    named = workspace.environment | (environment or {})
    done = subprocess.run(
        [
            *(sys.executable, "-P", str(Path(__file__).resolve())),
            json.dumps({"imported": imported, "calls": calls}),
        ],
        cwd=workspace.folder,
        env={name: value for name, value in named.items() if value is not None},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main() -> None:
    """Import, call, and print the differences."""
    given = json.loads(sys.argv[1])
    for name in given["imported"]:
        importlib.import_module(name)
    if "torch" in given["imported"]:
        import torch

        torch.set_num_threads(_THREADS)
    import quietcorpus as qc

    before, refusals = settings(given["imported"]), []
    for name, arguments in given["calls"]:
        try:
            operator.attrgetter(name)(qc)(**arguments)
        except qc.InputError as error:
            refusals.append(str(error))
    after = settings(given["imported"])
    different = {
        name: [before.get(name), after.get(name)]
        for name in sorted(before | after)
        if before.get(name) != after.get(name)
    }
    print(json.dumps({"settings": different, "refusals": refusals}))


if __name__ == "__main__":
    main()
