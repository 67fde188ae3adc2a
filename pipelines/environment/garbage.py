"""Python's garbage collector, which has much to walk through once all libraries are imported."""

from __future__ import annotations

import atexit
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_TELLING = ("duckdb", "triton")
"""Libraries made with nanobind, which lists unfreed objects on standard error at the end."""


class _Process:
    is_a_commands = False


def keep_all() -> None:
    """Have this process, a command's own, keep all that it has when it has imported and as it ends.

    The collector never walks through what was imported, and the end does not take it apart: each
    costs a quarter of a second and more. In a process of others, their garbage would stay as well.
    """
    _Process.is_a_commands = True
    atexit.register(_end)


def _end() -> None:
    """Leave all objects, unless a library would complain of them."""
    if any(name in sys.modules for name in _TELLING):
        gc.unfreeze()
    else:
        gc.freeze()


@contextmanager
def uncollected() -> Iterator[None]:
    """Keep the collector from walking, again and again, through what is being imported."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if _Process.is_a_commands:
            gc.freeze()
        if enabled:
            gc.enable()
