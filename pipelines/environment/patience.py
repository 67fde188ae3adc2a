"""The patience of object stores' clients with outages, in the launcher and in every worker."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

from quietcorpus.transforms.outages import Requests, outage
from quietcorpus.transforms.temporary import Temporary

from .request_dates import date_as_stores_do

_LOGGER = logging.getLogger("quietcorpus.storage")
# With their pauses, these attempts last half a minute if connections fail at once.
_VARIABLES = {"AWS_RETRY_MODE": "standard", "AWS_MAX_ATTEMPTS": "10"}
LONGEST_SECONDS = 60.0
"""After a request to S3 has failed for so long, with its client's own attempts, it is given up."""
_LONGEST_PAUSE_SECONDS = 10.0
_FIRST_FAILURE = "quietcorpus_first_failure"
_SILENT_ATTEMPTS = 2
_SECONDS_BETWEEN_LINES = 5.0
_told: list[float] = []  # when a line was last written


def be_patient(environment: MutableMapping[str, str] = os.environ) -> None:
    """Make boto outlast a short outage, unless the environment says otherwise.

    Google's and Azure's clients retry for longer by default.
    """
    for name, value in _VARIABLES.items():
        environment.setdefault(name, value)


def _change() -> Callable[[], None]:
    own = [name for name in _VARIABLES if name not in os.environ]
    be_patient()
    undo_clients = change_clients()

    def undo() -> None:
        undo_clients()
        for name in own:
            os.environ.pop(name, None)

    return undo


def change_clients() -> Callable[[], None]:
    """Log the pauses between attempts on a store, end Beam's early, and outlast a wrong clock.

    Returns the undoing.
    """
    changes = (
        _tell_beams_pauses(),
        _tell_botos_pauses(),
        date_as_stores_do(),
        _mend_beams_errors(),
    )

    def undo() -> None:
        for undo_one in reversed(changes):
            undo_one()

    return undo


def _tell_beams_pauses() -> Callable[[], None]:
    """Have Beam tell of its attempts at what boto gave up, and end them early.

    They would go on for nine minutes (`with_exponential_backoff`, apache_beam/utils/retry.py).
    """
    from apache_beam.utils import retry

    usual = retry.FuzzedExponentialIntervals

    class Pauses(usual):  # type: ignore[misc, valid-type]
        def __iter__(self) -> Iterator[float]:
            return _pauses(super().__iter__(), time.monotonic())

    retry.FuzzedExponentialIntervals = Pauses

    def undo() -> None:
        retry.FuzzedExponentialIntervals = usual

    return undo


def _tell_botos_pauses() -> Callable[[], None]:
    """Make boto report its attempts, and end them early.

    If a store takes connections and answers nothing, each attempt lasts a minute, and ten of them
    as many. `RetryHandler.needs_retry` (botocore/retries/standard.py) returns the pause before the
    next one; the request's context stays with it from one attempt to the next.
    """
    try:
        from botocore.retries.standard import RetryHandler
    except ImportError:
        return lambda: None
    usual = RetryHandler.needs_retry

    def needs_retry(self: Any, **given: Any) -> float | None:
        pause: float | None = usual(self, **given)
        failure, answer = given.get("caught_exception"), given.get("response")
        context = given["request_dict"]["context"]
        if pause and failure:
            first = context.setdefault(_FIRST_FAILURE, time.monotonic())
            if time.monotonic() - first > LONGEST_SECONDS:
                return None
        Requests.repeated += bool(pause)
        # The first answer of a store that throttles is nothing to tell of.
        if pause and (failure or given["attempts"] > _SILENT_ATTEMPTS):
            _tell(failure, answer[0].status_code if answer else None, pause)
        return pause

    RetryHandler.needs_retry = needs_retry

    def undo() -> None:
        RetryHandler.needs_retry = usual

    return undo


def _mend_beams_errors() -> Callable[[], None]:
    """Have Beam take an error of boto's without an answer for one of S3.

    It looks for a status in the answer, which is None if the store is silent, and would raise
    AttributeError (`get_http_error_code`, apache_beam/io/aws/clients/s3/boto3_client.py).
    """
    try:
        from apache_beam.io.aws.clients.s3 import boto3_client
    except ImportError:
        return lambda: None
    usual = boto3_client.get_http_error_code

    def get_http_error_code(error: BaseException) -> Any:
        return usual(error) if getattr(error, "response", None) else None

    boto3_client.get_http_error_code = get_http_error_code

    def undo() -> None:
        boto3_client.get_http_error_code = usual

    return undo


def _tell(failure: BaseException | None, status: int | None, pause: float) -> None:
    """Log a failure, unless another one was told of just before."""
    now = time.monotonic()
    if _told and now - _told[-1] < _SECONDS_BETWEEN_LINES:
        return
    _told[:] = [now]
    said = f"it answers {status}" if failure is None else outage(failure) or type(failure).__name__
    _LOGGER.warning("a store fails (%s); it is asked again in %.0f s", said, pause)


def _pauses(usual: Iterator[float], begun: float) -> Iterator[float]:
    """Yield the pauses after failures; each is asked for while its failure is being handled."""
    for pause in usual:
        failure = sys.exc_info()[1]
        of_s3 = type(failure).__name__ == "S3ClientError"  # its class needs boto to be installed
        if of_s3 and time.monotonic() - begun > LONGEST_SECONDS:
            return
        shorter = min(pause, _LONGEST_PAUSE_SECONDS) if of_s3 else pause
        if failure is not None:
            Requests.repeated += 1
            _tell(failure, None, shorter)
        yield shorter


patience = Temporary(_change)
"""Be patient within the context, and restore the process afterwards."""
