"""Python's garbage collector, which has much to walk through once all libraries are imported."""

from __future__ import annotations

import atexit
import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Keep the collector from walking, again and again, through what is being imported."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def end_at_once() -> None:
    """Have this process end without taking apart all that it has loaded, half a second's work."""
    atexit.register(gc.freeze)
