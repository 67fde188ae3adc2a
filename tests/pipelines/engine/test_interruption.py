"""Interrupts are kept until they are safe."""

from __future__ import annotations

import os
import signal
import time

import pytest
from numba.core.compiler_lock import global_compiler_lock

from quietcorpus.pipelines.engine.interruption import interruptible


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
