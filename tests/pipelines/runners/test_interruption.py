"""Interrupts are kept until they are safe."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator

import pytest
from numba.core.compiler_lock import global_compiler_lock

from quietcorpus.pipelines.runners.interruption import deadline, interruptible
from quietcorpus.transforms.errors import DeadlinePassed, InputError


@pytest.fixture(autouse=True)
def taken() -> Iterator[None]:
    """Take Ctrl-C as Python does, where a shell that runs this in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_while_a_kernel_is_compiled(number: signal.Signals) -> None:
    # Kills: an exception in the compiler's callbacks, lost there and followed by a crash.
    compiled = []

    def work() -> None:
        with global_compiler_lock:
            os.kill(os.getpid(), number)
            time.sleep(0.2)
            compiled.append("kernel")
        time.sleep(30)

    with pytest.raises(KeyboardInterrupt), interruptible():
        work()
    assert compiled == ["kernel"]


def test_an_interrupt_at_the_end_of_the_last_kernel() -> None:
    # Kills: a signal that comes again when the process has its own handlers back.
    with pytest.raises(KeyboardInterrupt), interruptible(), global_compiler_lock:
        interrupt()
    time.sleep(0.3)


def test_an_interrupt_that_became_a_failure() -> None:
    def work() -> None:
        try:
            interrupt()
        except KeyboardInterrupt:
            raise RuntimeError("a bundle failed") from None

    with pytest.raises(KeyboardInterrupt), interruptible():
        work()


def test_other_failures_stay_what_they_are() -> None:
    with pytest.raises(RuntimeError, match="a bundle failed"), interruptible():
        raise RuntimeError("a bundle failed")


def test_a_handler_that_python_could_not_restore(monkeypatch: pytest.MonkeyPatch) -> None:
    # Kills: a TypeError at the end of a call, in a program whose handlers are set in C.
    own = signal.getsignal(signal.SIGINT)
    with monkeypatch.context() as patch:
        patch.setattr(signal, "getsignal", lambda _: None)
        with interruptible():
            pass
    assert signal.getsignal(signal.SIGINT) is own


def test_the_handlers_are_given_back() -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with interruptible():
        assert signal.getsignal(signal.SIGTERM) is not before[1]
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


SOON = 0.1 / 60  # minutes


def test_a_deadline_ends_what_a_run_does() -> None:
    # Kills: a deadline that waits for the work; one that Beam takes for a failed bundle; one that a
    # command reports as Ctrl-C, which no schedule repeats.
    begun = time.monotonic()
    with pytest.raises(DeadlinePassed, match=r"^deadline: the run .* minutes;"), deadline(SOON):
        time.sleep(30)

    def bundle() -> None:
        try:
            time.sleep(30)
        except KeyboardInterrupt:
            raise RuntimeError("a bundle failed") from None

    with pytest.raises(DeadlinePassed), deadline(SOON), interruptible():
        bundle()
    assert time.monotonic() - begun < 25


def test_a_deadline_is_over_with_its_run() -> None:
    # Kills: a signal that ends the caller's process later; a handler that stays; a lifted deadline
    # that interrupts a publication.
    before = signal.getsignal(signal.SIGALRM)
    with deadline(1 / 60):
        pass
    time.sleep(1.1)
    with deadline(1 / 60) as lift, interruptible():
        lift()
        time.sleep(1.1)
    with deadline(None), interruptible():
        assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getsignal(signal.SIGALRM) is before


def test_what_is_not_the_deadline_stays_what_it_is() -> None:
    # Kills: Ctrl-C reported as a deadline.
    with pytest.raises(KeyboardInterrupt), deadline(10):
        interrupt()
    with pytest.raises(RuntimeError, match="other"), deadline(10):
        raise RuntimeError("other")


def test_a_deadline_needs_the_main_thread() -> None:
    # Kills: a deadline that is taken and never kept.
    said: list[str] = []

    def call() -> None:
        try:
            with deadline(10):
                pass
        except InputError as error:
            said.append(str(error))

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    assert said == ["deadline: works only in the main thread; call from there"]
