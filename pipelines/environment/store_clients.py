"""The clients of object stores: one for each setting, patient with outages and clocks.

boto's clients of S3, of which a process makes one for each setting.

The dates of boto's requests, which are a store's where it has refused this machine's.

The patience of object stores' clients with outages, in the launcher and in every worker.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, MutableMapping
from datetime import UTC, datetime, timedelta
from http.client import FORBIDDEN
from types import SimpleNamespace
from typing import Any

from quietcorpus.transforms.outages import Requests, outage
from quietcorpus.transforms.store_clock import StoreClock
from quietcorpus.transforms.threads import Temporary

_CONNECTIONS = 64  # boto keeps 10, and logs a warning for each that it drops


class _Clients:
    """A stand-in for `boto3` whose sessions share their clients."""

    def __init__(self) -> None:
        self._made: dict[object, Any] = {}
        self._lock = threading.Lock()
        self.session = SimpleNamespace(Session=lambda: self)

    def client(self, **settings: Any) -> Any:
        """Return the client for these settings, which is made once in a process."""
        import boto3
        from botocore.config import Config

        # A fork has its own: its parent's connections are no other process's to use.
        key = os.getpid(), *sorted(settings.items())
        with self._lock:
            if key not in self._made:
                config = Config(max_pool_connections=_CONNECTIONS)
                self._made[key] = boto3.session.Session().client(config=config, **settings)
            return self._made[key]


def share_clients() -> Callable[[], None]:
    """Have Beam's file system share its clients of S3; return the undoing.

    Beam makes a session and a client for each file that it opens, and for each other request
    (`S3FileSystem._path_open`, apache_beam/io/aws/s3filesystem.py; `Client.__init__`,
    apache_beam/io/aws/clients/s3/boto3_client.py). That takes a twentieth of a second of a core, a
    quarter with a session's reads, and a separate connection.
    """
    try:
        from apache_beam.io.aws.clients.s3 import boto3_client
    except ImportError:
        return lambda: None
    usual = boto3_client.boto3
    if usual is None:  # boto is not installed
        return lambda: None
    boto3_client.boto3 = _Clients()

    def undo() -> None:
        boto3_client.boto3 = usual

    return undo


clients_shared = Temporary(share_clients)
"""Have Beam's file system share its clients of S3 within the context."""


_LOGGER = logging.getLogger("quietcorpus.storage")
_ATTEMPTS = 10
"""Of one request: a clock may jump again and again."""
_SHORT = timedelta(minutes=1)
"""Requests that were refused at once tell of a jump once."""
_SIGNED = "%Y%m%dT%H%M%SZ"


def date_as_stores_do() -> Callable[[], None]:
    """Have boto repeat a request that was refused for its date, dated by the store's clock.

    boto signs a request with the time of `get_current_datetime` (botocore/auth.py), anew at each
    attempt, and does not correct it. The status and the `Date` of the refusal say all: an answer
    to HEAD has no error's name. Returns the undoing.
    """
    try:
        from botocore import auth
        from botocore.retries.standard import RetryHandler

        usual_now = auth.get_current_datetime
    except (ImportError, AttributeError):  # an older boto has no such function
        return lambda: None
    usual_retry = RetryHandler.needs_retry

    def get_current_datetime(*given: Any, **named: Any) -> Any:
        return usual_now(*given, **named) + StoreClock.ahead

    def needs_retry(self: Any, **given: Any) -> float | None:
        pause: float | None = usual_retry(self, **given)
        if pause is None and given["attempts"] < _ATTEMPTS and _misdated(**given):
            Requests.repeated += 1
            return 0.0
        return pause

    auth.get_current_datetime, RetryHandler.needs_retry = get_current_datetime, needs_retry

    def undo() -> None:
        auth.get_current_datetime, RetryHandler.needs_retry = usual_now, usual_retry
        StoreClock.ahead = timedelta()

    return undo


def _misdated(response: Any, request_dict: Any, **_: Any) -> bool:
    """Return whether a store, if one answered, refused a request whose date was off its clock."""
    dated = request_dict["context"].get("timestamp")  # as it was signed
    if response is None or response[0].status_code != FORBIDDEN or dated is None:
        return False
    known = StoreClock.ahead
    signed = datetime.strptime(dated, _SIGNED).replace(tzinfo=UTC)
    if not StoreClock.learn(signed, response[0].headers.get("Date")):
        return False
    if abs(StoreClock.ahead - known) > _SHORT:
        _LOGGER.warning(
            "this machine's clock and a store's now differ by %.0f minutes; requests are dated by "
            "the store's",
            abs(StoreClock.ahead) / timedelta(minutes=1),
        )
    return True


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
