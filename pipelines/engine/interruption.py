"""Ctrl-C and SIGTERM during a pipeline in this process, or during the work on its results."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from quietcorpus.compiled import compiling

_INTERRUPTS = (signal.SIGINT, signal.SIGTERM)
_AGAIN_SECONDS = 0.05


@contextmanager
def interruptible() -> Iterator[None]:
    """Interrupt on Ctrl-C and SIGTERM, even where Beam takes them for the failure of a bundle.

    A signal while a kernel is compiled is sent again a moment later: the compiler calls back from
    C, where the exception would be lost and the process would crash.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    main = threading.main_thread().ident
    assert main is not None
    interrupted = False
    again: list[threading.Timer] = []

    def interrupt(number: int, _: FrameType | None) -> None:
        nonlocal interrupted
        interrupted = True
        if not compiling():
            raise KeyboardInterrupt
        again.append(threading.Timer(_AGAIN_SECONDS, signal.pthread_kill, (main, number)))
        again[-1].start()

    found = {number: signal.getsignal(number) for number in _INTERRUPTS}
    # Python could not restore a handler that is not Python's: None.
    originals = {number: handler for number, handler in found.items() if handler is not None}
    for number in originals:
        signal.signal(number, interrupt)
    try:
        yield
    except Exception:  # Beam may turn the interrupt into this; it is raised anew below
        if not interrupted:
            raise
    finally:
        for timer in again:
            timer.cancel()
        for number, original in originals.items():
            signal.signal(number, original)
    if interrupted:
        raise KeyboardInterrupt
