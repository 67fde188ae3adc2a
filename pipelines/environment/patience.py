"""The patience of object stores' clients with outages, in the launcher and in every worker."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable, Iterator

from quietcorpus.transforms.outages import outage
from quietcorpus.transforms.temporary import Temporary

_LOGGER = logging.getLogger("quietcorpus.storage")
# With their pauses, these attempts last half a minute if connections fail at once.
_VARIABLES = {"AWS_RETRY_MODE": "standard", "AWS_MAX_ATTEMPTS": "10"}
LONGEST_SECONDS = 60.0
"""After a request to S3 has failed for so long, with its client's own attempts, it is given up."""
_LONGEST_PAUSE_SECONDS = 10.0


def be_patient() -> None:
    """Make boto outlast a short outage, unless the environment says otherwise.

    Google's and Azure's clients retry for longer by default.
    """
    for name, value in _VARIABLES.items():
        os.environ.setdefault(name, value)


def _change() -> Callable[[], None]:
    own = [name for name in _VARIABLES if name not in os.environ]
    be_patient()
    undo_pauses = tell_pauses()

    def undo() -> None:
        undo_pauses()
        for name in own:
            os.environ.pop(name, None)

    return undo


def tell_pauses() -> Callable[[], None]:
    """Log each of Beam's pauses between attempts, and end them early for S3; return the undoing.

    Beam repeats whatever boto gave up, silently and for nine minutes (`with_exponential_backoff`,
    apache_beam/utils/retry.py). Its attempts are counted on top of boto's own.
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


def _pauses(usual: Iterator[float], begun: float) -> Iterator[float]:
    """Yield the pauses after failures; each is asked for while its failure is being handled."""
    for pause in usual:
        failure = sys.exc_info()[1]
        of_s3 = type(failure).__name__ == "S3ClientError"  # its class needs boto to be installed
        if of_s3 and time.monotonic() - begun > LONGEST_SECONDS:
            return
        shorter = min(pause, _LONGEST_PAUSE_SECONDS) if of_s3 else pause
        if failure is not None:
            said = outage(failure) or type(failure).__name__
            _LOGGER.warning("a store fails (%s); it is asked again in %.0f s", said, shorter)
        yield shorter


patience = Temporary(_change)
"""Be patient within the context, and restore the process afterwards."""
