"""Errors that a user can correct, and a guard that keeps private text out of all others."""

from __future__ import annotations

import functools
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ParamSpec

from quietcorpus.transforms.outages import outage

_P = ParamSpec("_P")

# At DEBUG these loggers of Beam quote elements, which hold private text.
for _name in ("worker.operations", "portability.fn_api_runner.trigger_manager"):
    logging.getLogger(f"apache_beam.runners.{_name}").setLevel(logging.INFO)


class InputError(Exception):
    """Bad input; the message is one line: the problem, its place, the remedy; no private text."""


class CapReached(InputError):
    """A release that would pass a cap of its ledger: nothing is wrong with it, but it ends here."""


class NoisyOutcome(InputError):
    """A refusal that a noisy outcome decides: it tells that outcome, which the budget paid for."""


class StageError(Exception):
    """An unforeseen failure in a worker, without the message that might quote private text."""


class Unavailable(StageError):
    """A resource that is missing now and may return; the message names it, without private text."""


class StoreUnavailable(Unavailable):
    """A store or a service that does not answer, or answers that it is out of order."""


class WorkerLost(StageError):
    """The loss of a worker process, with the work that it had not finished."""


class ClaimHeld(Unavailable):
    """An output that another run is writing."""


class DeadlinePassed(Unavailable):
    """A run that was not done in its time."""


@contextmanager
def client_errors(place: str, problem: str, kind: type[Exception] = InputError) -> Iterator[None]:
    """Turn whatever a store's client raises into an error about a place; our own errors pass.

    An outage becomes StoreUnavailable, since another try may help, and all else an error of this
    kind. Every object store's client has exceptions of its own, so there is no narrower class.

    Args:
        place: the key and the URI that the error begins with; empty if a caller will add them.
        problem: what the place has and what mends it, unless the store is out of order.
        kind: the class of the error.
    """
    try:
        yield
    except (InputError, StageError, kind):
        raise
    except Exception as error:
        raise blamed(error, place, problem, kind) from None


def blamed(
    error: BaseException, place: str, problem: str, kind: type[Exception] = InputError
) -> Exception:
    """Return the error that `client_errors` raises for this one."""
    if said := outage(error):
        return StoreUnavailable(f"{place} cannot be used now: {said}; run again later".lstrip())
    return kind(f"{place} {problem}".lstrip())


def redacted(
    process: Callable[_P, Iterator[Any]],
) -> Callable[_P, Iterator[Any]]:
    """Guard a DoFn's generator: errors leave it without private text and without their cause."""

    @functools.wraps(process)
    def guarded(*args: _P.args, **kwargs: _P.kwargs) -> Iterator[Any]:
        failure: Exception | None = None
        try:
            yield from process(*args, **kwargs)
        except (InputError, StageError) as error:
            failure = type(error)(*error.args)
        except Exception as error:  # the message of any other error may quote a document
            failure = _unforeseen(error)
        except (GeneratorExit, KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # a panic in Rust, whose message may quote a document too
            failure = StageError(f"{type(error).__name__} at {_place(error)}")
        # Raised outside the handlers, where Python would attach the original as its context.
        if failure is not None:
            raise failure

    # As `no_annotations` of Beam does, which need not be loaded here: with its option
    # `runtime_type_check`, Beam looks for the annotated names among the guard's own parameters.
    guarded._beam_no_annotations = True  # type: ignore[attr-defined]
    return guarded


def _unforeseen(error: Exception) -> StageError:
    if said := outage(error):
        return StoreUnavailable(f"a store fails at {_place(error)}: {said}; run again later")
    return StageError(f"{type(error).__name__}{_said(error)} at {_place(error)}")


def _said(error: BaseException) -> str:
    """Return the operating system's words for a failure, such as that a disk is full."""
    number = error.errno if isinstance(error, OSError) else None
    return f" ({os.strerror(number)})" if number else ""


def _place(error: BaseException) -> str:
    """Return where the error was raised: file name, line and function, innermost last."""
    frames = []
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        frames.append(f"{code.co_filename.rsplit('/', 1)[-1]}:{trace.tb_lineno} {code.co_name}")
        trace = trace.tb_next
    return " > ".join(frames[1:][-4:])
