"""The end of every command: its result, or one line and an exit code."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import NoReturn, TypeVar

import click

from .logs import is_json

_T = TypeVar("_T")

_EXIT_BAD_INPUT = 2
_EXIT_CAP_REACHED = 3  # to a schedule, this is its end, and no mistake of anybody's
_EXIT_FAILURE = 1
_EXIT_INTERRUPTED = 130  # neither bad input nor a failure: worth another try
_LAST_SECONDS = 15
_LOGGER = logging.getLogger("quietcorpus")


def guarded(run: Callable[[], _T], failure_note: Callable[[], str] = str) -> _T:
    """Turn every failure into one line and an exit code; `failure_note` ends the line."""
    from quietcorpus.transforms.errors import DeadlinePassed, InputError, StageError
    from quietcorpus.transforms.outages import outage

    # A scheduler ends a job with SIGTERM; like Ctrl-C, it must leave nothing behind.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return run()
    except InputError as error:
        _fail(str(error), exit_code(error))
    except KeyboardInterrupt as error:
        _fail(f"interrupted{failure_note()}", exit_code(error), soon=True)
    except DeadlinePassed as error:
        _fail(f"{error}{failure_note()}", exit_code(error), soon=True)
    except StageError as error:
        _fail(f"{error}{failure_note()}", exit_code(error))
    except Exception as error:  # its message may quote private text, so only its type is shown
        said = outage(error)
        unseen = f"unexpected {type(error).__name__}"
        line = f"a store or service fails: {said}; run again later" if said else unseen
        _fail(f"{line}{failure_note()}", exit_code(error))


def exit_code(error: BaseException) -> int:
    """Return the code with which a command ends that raises an error."""
    from quietcorpus.transforms.errors import CapReached, InputError

    if isinstance(error, CapReached):
        return _EXIT_CAP_REACHED
    if isinstance(error, InputError):
        return _EXIT_BAD_INPUT
    return _EXIT_INTERRUPTED if isinstance(error, KeyboardInterrupt) else _EXIT_FAILURE


def _fail(message: str, code: int, *, soon: bool = False) -> NoReturn:
    line = " ".join(message.split())
    if is_json():
        _LOGGER.error("%s", line)
    else:
        click.echo(f"quietcorpus: error: {line}", err=True)
    if soon:
        _end_soon(code)
    sys.exit(code)


def _end_soon(code: int) -> None:
    """End the process soon, once it is tidied up: interrupted threads may wait for ever."""
    timer = threading.Timer(_LAST_SECONDS, os._exit, (code,))
    timer.daemon = True
    timer.start()
