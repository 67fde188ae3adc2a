"""Spark's executors, by the log of its driver, and a limit on those that start in vain.

Spark's own cluster manager replaces an executor that has started and ended, as with a full disk or
too little memory, for as long as the application lives: its job would neither fail nor end.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from quietcorpus.transforms.errors import StageError

from .heartbeat import Sight

_JOB_SERVER = "SparkJarJobServer"  # Beam's logger of the output of the job server, Spark's driver
_ADDED = re.compile(r" Executor added: \S+/(\S+) on ")
_ENDED = re.compile(r" Executor updated: \S+/(\S+) is now (?:EXITED|FAILED|LOST)\b")
_BEGUN = re.compile(r" Starting task \S+ in stage .{0,200}?\bexecutor (\S+?),")
_DONE = re.compile(r" Finished task \S+ in stage ([\d.]+) .{0,200}\((\d+)/(\d+)\)")
_REGISTERED = re.compile(r" Registered executor .{0,200}? with ID (\S+?),")
_LOST = re.compile(r" Lost executor (\S+) on ")
_RETIRED = re.compile(r" Executor (\S+) on \S+ killed by driver")  # it had nothing to do
_MOST = 50


class Executors(logging.Filter):
    """A filter that reads in the driver's log what becomes of executors and tasks.

    Starts are in vain once `_MOST` executors have ended before they got a task, since a task was
    last finished and while no other executor is at work. So a cluster with one broken machine goes
    on.
    """

    workers = "executors"

    def __init__(self, cancel: Callable[[], None]) -> None:
        super().__init__()
        self._cancel = cancel
        self._cancelling: threading.Thread | None = None
        self._idle: set[str] = set()
        self._busy: set[str] = set()
        self._ended = 0
        self._live: set[str] = set()
        self._lost = 0
        self._step = ""

    def look(self) -> Sight:
        """Return the executors that are registered, those that were lost, and the tasks done."""
        return Sight(len(self._live), self._lost, self._step)

    @property
    def in_vain(self) -> bool:
        return self._ended >= _MOST and not self._busy

    def filter(self, record: logging.LogRecord) -> bool:
        """Read a line of the log, and let it pass."""
        line = record.getMessage()
        if done := _DONE.search(line):
            self._ended = 0
            self._step = f"stage {done[1]}: {done[2]} of {done[3]} tasks"
        elif registered := _REGISTERED.search(line):
            self._live.add(registered[1])
        elif gone := _LOST.search(line) or _RETIRED.search(line):
            self._lost += gone[1] in self._live and gone.re is _LOST
            self._live.discard(gone[1])
        elif added := _ADDED.search(line):
            self._idle.add(added[1])
        elif begun := _BEGUN.search(line):
            self._idle.discard(begun[1])
            self._busy.add(begun[1])
        elif ended := _ENDED.search(line):
            self._busy.discard(ended[1])
            if ended[1] in self._idle:
                self._idle.remove(ended[1])
                self._ended += 1
                if self.in_vain:
                    self._try_to_cancel()
        return True

    def _try_to_cancel(self) -> None:
        """Cancel in another thread: the job server blocks if this one stops reading its output."""
        if self._cancelling is None or not self._cancelling.is_alive():
            self._cancelling = threading.Thread(target=self._quietly, name="cancel", daemon=True)
            self._cancelling.start()

    def _quietly(self) -> None:
        with suppress(Exception):  # the next executor that ends tries again
            self._cancel()


@contextmanager
def limited(cancel: Callable[[], None]) -> Iterator[Executors]:
    """Cancel a job whose executors start in vain; it then ends with StageError.

    Yields the executors.

    Executors are known from what the job server logs from now on, if this process has started one.
    """
    logger = logging.getLogger(_JOB_SERVER)
    executors = Executors(cancel)
    logger.addFilter(executors)
    level = logger.level
    logger.setLevel(logging.INFO)  # the level of the driver's lines, whatever is shown of them
    try:
        yield executors
    except Exception:
        if executors.in_vain:
            raise StageError(
                f"the workers: {_MOST} of Spark's executors ended, one after another, before they "
                "took a task; see the workers' disks for room (SPARK_WORKER_DIR, "
                "SPARK_LOCAL_DIRS), their memory and Java, and the executors' own logs"
            ) from None
        raise
    finally:
        logger.removeFilter(executors)
        logger.setLevel(level)
