"""Ctrl-C, SIGTERM and a deadline during a pipeline, or during the work on its results."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from quietcorpus.compiled import compiling
from quietcorpus.transforms.errors import DeadlinePassed, InputError

_INTERRUPTS = (signal.SIGINT, signal.SIGTERM)
_ALARM = signal.SIGALRM
_AGAIN_SECONDS = 0.05


@contextmanager
def interruptible() -> Iterator[None]:
    """Interrupt on Ctrl-C, SIGTERM and a deadline, even where Beam takes them for a failed bundle.

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
    if isinstance(handler := signal.getsignal(_ALARM), _Alarm):
        found[_ALARM] = handler
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


class _Alarm:
    """The handler of a deadline's signal."""

    over = False

    def __call__(self, number: int, _: FrameType | None) -> None:
        if not self.over:
            raise KeyboardInterrupt


@contextmanager
def deadline(minutes: float | None) -> Iterator[Callable[[], None]]:
    """Interrupt the body after `minutes`, as Ctrl-C would; it raises DeadlinePassed then.

    Yields a function that lifts the deadline. Raises InputError outside the main thread, the only
    one that signals interrupt.
    """
    if minutes is None:
        yield lambda: None
        return
    if threading.current_thread() is not threading.main_thread():
        raise InputError("deadline: works only in the main thread; call from there")
    main = threading.get_ident()
    alarm, lock, passed = _Alarm(), threading.Lock(), threading.Event()

    def end() -> None:
        with lock:
            if not alarm.over:
                passed.set()
                signal.pthread_kill(main, _ALARM)

    timer = threading.Timer(60 * minutes, end)
    timer.daemon = True
    before = signal.signal(_ALARM, alarm)
    timer.start()
    try:
        yield timer.cancel
    except KeyboardInterrupt:
        if not passed.is_set():
            raise
        raise DeadlinePassed(
            f"deadline: the run was not done after {minutes:g} minutes; give it more time, or more "
            "workers"
        ) from None
    finally:
        with lock:  # else the signal could come once the handler is the caller's again
            alarm.over = True
        timer.cancel()
        signal.signal(_ALARM, before)
