"""Runs the command line, or code of a test's own, in forked children of a process that is warm: it
has imported everything, and compiled code is loaded.

A test run has many commands, and either takes longer than most of them. Each line of standard input
is a request, each line of standard output its exit code.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import pkgutil
import runpy
import signal
import sys
import tempfile
import threading
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
from numba.core.caching import FunctionCache
from numba.core.dispatcher import Dispatcher

from quietcorpus.cli.main import main
from quietcorpus.indexes.tokens.tokenizer import tokenize
from quietcorpus.pipelines.environment.version import environment_digest

_HERE = Path(__file__).parent
"""Helpers are loaded by their place: a command has none of tests on its path."""
_TIMEOUT_SECONDS = 600
_LOADED_LATE = (
    "dp_accounting.pld.privacy_loss_distribution",
    "matplotlib.figure",
    "sentence_transformers",
    "sklearn.linear_model",
    "sklearn.svm",
    "tomotopy",
)
"""Packages that commands load once they need them: some take ten seconds."""


def _become_the_command(request: dict[str, Any], offer: Callable[[], None]) -> None:
    signal.alarm(_TIMEOUT_SECONDS)
    for descriptor, path in enumerate((os.devnull, request["stdout"], request["stderr"])):
        opened = os.open(path, os.O_RDWR)
        os.dup2(opened, descriptor)
        os.close(opened)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    tempfile.tempdir = None  # some library has asked for it already
    sys.argv = ["quietcorpus", *request["arguments"]]
    code = request["code"]
    if "--workers" in sys.argv:
        offer()
    _run(main if code is None else lambda: exec(code, {"__name__": "__main__"}))


def _run(command: Callable[[], object]) -> NoReturn:
    """Run a command to its end, and end this process.

    It ends as an interpreter does, but for the clearing of thousands of modules, which takes longer
    than most commands: threads are waited for, what was registered for the end is done.
    """
    code = 0
    try:
        command()
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else 1
    except BaseException:  # an uncaught error, which a test would see
        sys.excepthook(*sys.exc_info())
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _warm(modules: Sequence[str]) -> None:
    """Do what every command would have to do; it must start no thread, which no fork would have.

    Where `modules` are named, import these alone.
    """
    gc.disable()
    for name in modules:
        importlib.import_module(name)
    if not modules:
        _warm_all()
    # Hundreds of finalizers would unload what was loaded: half the time of a short command.
    weakref.finalize._registry.clear()  # type: ignore[attr-defined]
    gc.freeze()  # or every child would walk through all of it as it ends
    gc.enable()


def _warm_all() -> None:
    for name in _LOADED_LATE:
        importlib.import_module(name)
    for name in ("pipelines", "transforms", "evaluation", "indexes", "mechanisms"):
        package = importlib.import_module(f"quietcorpus.{name}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    environment_digest()  # of files that no test changes
    tokenize(pa.array(["warm"]))  # numba's own registries, and the tables of characters
    _load_kernels()
    runpy.run_path(str(_HERE / "remembered.py"))["remember"]()


def _load_kernels() -> None:
    """Load the kernels that are compiled already: each takes a command hundredths of a second."""
    ours = [module for name, module in sys.modules.items() if name.startswith("quietcorpus.")]
    kernels = {
        value for module in ours for value in vars(module).values() if isinstance(value, Dispatcher)
    }
    for kernel in kernels:
        if isinstance(kernel._cache, FunctionCache):
            codegen = kernel.targetctx.codegen()
            for key in kernel._cache._cache_file._load_index():
                if key == kernel._cache._index_key(key[0], codegen):  # of this code and processor
                    kernel.compile(key[0])


def serve(offer: Callable[[], None]) -> None:
    """Answer requests until there are no more; in a child, leave as the command itself would.

    `offer` has a process fork its workers.
    """
    while line := sys.stdin.readline():
        pid = os.fork()
        if pid == 0:
            _become_the_command(json.loads(line), offer)
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    forked_workers = runpy.run_path(str(_HERE / "forked_workers.py"))
    program = forked_workers["executable"](Path(sys.argv[1]))
    _warm(sys.argv[2:])
    serve(lambda: forked_workers["offer"](program))
