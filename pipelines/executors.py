"""Executors that Spark starts again and again, each to end at once: a full disk, too little memory.

Spark's own cluster manager replaces an executor that started and then ended for as long as the
application lives, so that its job would neither fail nor end.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from transforms.errors import StageError

_JOB_SERVER = "SparkJarJobServer"  # Beam's logger of what the job server, Spark's driver, says
_ADDED = re.compile(r" Executor added: (\S+) on ")
_ENDED = re.compile(r" Executor updated: (\S+) is now (?:EXITED|FAILED|LOST|KILLED)\b")
_DONE = re.compile(r" Finished task \S+ in stage ")
_MOST = 50


class _Executors(logging.Filter):
    """Counts, in the driver's log, executors that ended although no task was finished meanwhile."""

    def __init__(self, cancel: Callable[[], None]) -> None:
        super().__init__()
        self._cancel = cancel
        self._idle: set[str] = set()  # those that were started since a task was finished
        self._ended = 0

    @property
    def in_vain(self) -> bool:
        return self._ended >= _MOST

    def filter(self, record: logging.LogRecord) -> bool:
        """Note a line of the log; it is left alone."""
        line = record.getMessage()
        if _DONE.search(line):
            self._idle.clear()
            self._ended = 0
        elif added := _ADDED.search(line):
            self._idle.add(added[1])
        elif (ended := _ENDED.search(line)) and ended[1] in self._idle:
            self._idle.remove(ended[1])
            self._ended += 1
            if self.in_vain:
                with suppress(Exception):  # the next one that ends tries again
                    self._cancel()
        return True


@contextmanager
def limited(cancel: Callable[[], None]) -> Iterator[None]:
    """Cancel a job whose executors start in vain; it then ends with StageError.

    They are known from the log of the job server that this process has started, if it has.
    """
    logger = logging.getLogger(_JOB_SERVER)
    executors = _Executors(cancel)
    logger.addFilter(executors)
    level = logger.level
    logger.setLevel(logging.INFO)  # as Spark's driver does, whatever is shown of it
    try:
        yield
    except Exception:
        if executors.in_vain:
            raise StageError(
                f"workers: {_MOST} of Spark's executors ended, one after another, before any task "
                "did; see the workers' disks for room (SPARK_WORKER_DIR, SPARK_LOCAL_DIRS), their "
                "memory and Java, and the executors' own logs"
            ) from None
        raise
    finally:
        logger.removeFilter(executors)
        logger.setLevel(level)
