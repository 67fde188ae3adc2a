"""The launcher's view of a job in other processes: what its workers report and write."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TypeAlias

from apache_beam import Pipeline

from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.transforms.reports import Reader, Reports, Work, reporting

from ..jobs.job import Job
from ..runners.engine import Engine
from ..storage.staging import shards_written
from ..terminal.observer import STAGES, Observer
from ..terminal.progress import Pace

Build: TypeAlias = Callable[[Pipeline], None]
"""A function that builds a pipeline."""
_LOGGER = logging.getLogger("quietcorpus.release")


def run_watched(
    engine: Engine,
    build: Build,
    observer: Observer,
    job: Job,
    key: ReleaseKey,
    shards: int | None = None,
) -> None:
    """Run a pipeline as `Engine.run` does, and have its workers report if they are processes apart.

    `key` is the one that `job.key` fetches in workers, and `shards` the number of data files, if
    there are any.
    """
    earlier = job.finished.earlier if job.finished else ()
    watch = Watch(job.staging, key, observer, shards, earlier)
    reports = (
        Reports(_reports_in(job.staging), job.key) if engine.apart and not engine.dry else None
    )

    def reported(pipeline: Pipeline) -> None:
        with reporting(reports):
            build(pipeline)

    try:
        engine.run(reported, observer, watch.said)
    finally:
        if reports:
            watch.end()


class Watch:
    """A watch over the staging area of a run, for its log, its metrics and its summary."""

    def __init__(
        self,
        staging: str,
        key: ReleaseKey,
        observer: Observer,
        shards: int | None,
        earlier: Sequence[str] = (),
    ) -> None:
        """Take the number of shards, if any; the observer gets the findings, in numbers.

        `earlier` holds the staging areas of which shards may be kept.
        """
        self._stagings, self._shards = (*earlier, staging), shards
        self._documents, self._on_progress = observer.documents, observer.on_progress
        self._reader = Reader(_reports_in(staging), key)
        self._of_shards = Pace(shards)
        self._pass: tuple[str, Pace] | None = None

    def said(self) -> str:
        """Say how far the job is; raises what the store raises."""
        work = self._found()
        if work.documents:
            read, rejected = sum(work.documents.values()), sum(work.rejected.values())
            self._on_progress({"documents": read, "rejected": rejected})
        return "; ".join(filter(None, (*self._reading(work), *self._writing(), repeated(work))))

    def end(self) -> None:
        """Log the work that workers repeated; a store that fails now is not asked again."""
        with suppress(Exception):
            if said := repeated(self._found()):
                _LOGGER.warning(
                    "some work was done twice, which cost time, and no budget; %s", said
                )

    def _found(self) -> Work:
        work = self._reader.work()
        self._on_progress({"repeated": work.repeated, "requests": work.requests})
        return work

    def _reading(self, work: Work) -> Iterator[str]:
        begun = [stage for stage in STAGES if stage in work.documents]
        if not begun:
            return
        stage = begun[-1]  # passes follow each other
        done = work.documents[stage] + work.kept * (stage == "release")
        if self._pass is None or self._pass[0] != stage:
            self._pass = stage, Pace(self._documents, done)
        total = "" if self._documents is None else f" of {self._documents:,}"
        yield ", ".join(
            filter(None, (f"{STAGES[stage]}: {done:,}{total} documents", self._pass[1].said(done)))
        )

    def _writing(self) -> Iterator[str]:
        if self._shards is None:
            return
        done = shards_written(*self._stagings)
        self._on_progress({"shards": done})
        foreseen = "" if self._pass and self._documents else self._of_shards.said(done)
        said = f"{done} of {self._shards} shards are written"
        yield ", ".join(filter(None, (said, foreseen)))


def _reports_in(staging: str) -> str:
    return f"{staging}/reports"


def repeated(work: Work) -> str:
    """Say what was done again; empty if nothing was."""
    parts = f"parts of the corpus read again: {work.repeated:,}" if work.repeated else ""
    requests = f"requests to stores repeated: {work.requests:,}" if work.requests else ""
    return ", ".join(filter(None, (parts, requests)))
