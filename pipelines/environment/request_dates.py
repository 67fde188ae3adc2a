"""The dates of boto's requests, which are a store's where it has refused this machine's."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from http.client import FORBIDDEN
from typing import Any

from quietcorpus.transforms.outages import Requests
from quietcorpus.transforms.store_clock import StoreClock

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
