"""A heartbeat of a job on a cluster, and an end to the wait for workers that do not come.

Beam's runners report nothing until a job is done, and wait for ever for a first worker.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Protocol

from quietcorpus.transforms.errors import Unavailable

from ..terminal.duration import duration
from ..terminal.logs import PROGRESS

_BEAT_SECONDS = 30.0
_LOOK_SECONDS = 5.0  # Flink is asked twice each time
_ANSWER_SECONDS = 5.0
_NO_ANSWER = "the store does not say how far it is"
_LOGGER = logging.getLogger(PROGRESS)


@dataclass(frozen=True)
class Sight:
    """The state of a cluster's work on a job.

    Attributes:
        live: the number of workers that are there.
        lost: the number of workers that are gone and did not end by themselves.
        step: the tasks that are done, in words; empty if none has begun.
    """

    live: int
    lost: int
    step: str


class Cluster(Protocol):
    """A cluster that can be looked at.

    Attributes:
        workers: the cluster's own name for its workers, in the plural.
    """

    @property
    def workers(self) -> str: ...

    def look(self) -> Sight | None:
        """Return the state now, or None if it cannot be seen."""


class _Asked:
    """A question to a store, which may take minutes to answer and then fail.

    A separate thread puts it, so that the caller can go on meanwhile.
    """

    def __init__(self, question: Callable[[], str]) -> None:
        self._question = question
        self._thread: threading.Thread | None = None
        self._answer: str | None = None

    def answer(self) -> str:
        """Return the answer of the first few seconds, or a note that none came.

        No question is put while an earlier one is open, whose answer would be an old one.
        """
        if self._thread is None or not self._thread.is_alive():
            self._answer = None
            self._thread = threading.Thread(target=self._ask, name="progress asked", daemon=True)
            self._thread.start()
            self._thread.join(_ANSWER_SECONDS)
            if not self._thread.is_alive() and self._answer is not None:
                return self._answer
        return _NO_ANSWER

    def _ask(self) -> None:
        with suppress(Exception):  # a store that fails now will be asked again
            self._answer = self._question()


@contextmanager
def attended(
    cluster: Cluster | None,
    cancel: Callable[[], object],
    written: Callable[[], str],
    patience: float,
    on_sight: Callable[[Sight], None] = lambda _: None,
    title: str = "the job runs",
) -> Iterator[None]:
    """Log the state of a job every half minute, and cancel a job that has no worker.

    Args:
        cluster: where the job runs; None for one that cannot be looked at.
        cancel: cancels the job; the body then ends with an exception.
        written: says what is written so far; empty if there is nothing to say.
        patience: seconds without any worker, after which Unavailable is raised.
        on_sight: called with the counts seen at each look.
        title: begins each line, and says that the job runs.
    """
    ended, given_up, asked = threading.Event(), threading.Event(), _Asked(written)

    def attend() -> None:
        begun = told = worked = time.monotonic()
        while not ended.wait(_LOOK_SECONDS):
            sight = cluster.look() if cluster else None
            now = time.monotonic()
            if sight is not None:
                on_sight(sight)
            if sight is None or sight.live:
                worked = now
            elif now - worked >= patience:
                given_up.set()
                with suppress(Exception):  # the job has ended meanwhile
                    cancel()
                return
            if now - told >= _BEAT_SECONDS:
                told = now
                seen = f"{title} for {duration(now - begun)}", *_said(cluster, sight)
                said = asked.answer()
                if not ended.is_set():
                    _LOGGER.info("%s", "; ".join(filter(None, (*seen, said))))

    thread = threading.Thread(target=attend, name="heartbeat", daemon=True)
    thread.start()
    try:
        yield
    except Exception:
        if given_up.is_set():
            assert cluster is not None
            raise Unavailable(
                f"the workers: the cluster had no {cluster.workers} for {patience / 60:g} min; "
                "see whether any are up, and have the cores and the memory that the job asks for; "
                "`worker_timeout` sets how long to wait"
            ) from None
        raise
    finally:
        ended.set()


def _said(cluster: Cluster | None, sight: Sight | None) -> Iterator[str]:
    if cluster is not None and sight is not None:
        yield sight.step
        yield f"{sight.live} {cluster.workers}" + (f", {sight.lost} lost" if sight.lost else "")
