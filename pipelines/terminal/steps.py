"""Progress through equal steps: a bar on a terminal, plain log lines elsewhere."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

from tqdm import tqdm

_LOG_EVERY_SECONDS = 10.0
_LOGGER = logging.getLogger("quietcorpus.steps")
_T = TypeVar("_T")


def shown(
    steps: Iterable[_T], count: int, what: str, unit: str, *, quiet: bool = False
) -> Iterator[_T]:
    """Yield the results of `count` steps, and show how many are done.

    Args:
        steps: yields one result a step.
        count: the number of steps.
        what: the name of the work.
        unit: the name of a step, in the plural.
        quiet: whether to log lines even on a terminal.
    """
    hidden = quiet or not sys.stderr.isatty()
    logged = time.monotonic()
    with tqdm(steps, what, count, leave=False, disable=hidden, unit=f" {unit}") as bar:
        for done, step in enumerate(bar, start=1):
            yield step
            if hidden and time.monotonic() - logged >= _LOG_EVERY_SECONDS:
                logged = time.monotonic()
                _LOGGER.info("%s: %d of %d %s", what, done, count, unit)
