"""The progress of a reconstruction: a bar on a terminal, log lines elsewhere."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tqdm import tqdm

_LOGGER = logging.getLogger("quietcorpus.progress")
_LOG_EVERY_SECONDS = 10.0


Advance = Callable[[int], object]
"""A callback that gets the number of documents for which one more step is done."""


@contextmanager
def progress(total: int, *, quiet: bool) -> Iterator[Advance]:
    """Show how many of `total` steps are done; each step is for one document."""
    if not quiet and sys.stderr.isatty():
        with tqdm(total=total, unit=" documents", unit_scale=True, file=sys.stderr) as bar:
            bar.set_description("reconstructing")
            yield bar.update
        return
    done, logged = 0, time.monotonic()

    def advance(documents: int) -> None:
        nonlocal done, logged
        done += documents
        if time.monotonic() - logged >= _LOG_EVERY_SECONDS:
            logged = time.monotonic()
            _LOGGER.info("reconstructing: %.0f %% done", 100 * done / total)

    yield advance
