"""Tries of a job: what a later one keeps of an earlier one, of this run or of one that was killed.

The local engine ends with the first worker that it loses, and a store may be gone for longer than
its clients ask again. Clusters repeat lost work by themselves; the launcher runs the local engine's
job again. Noise is keyed, so a later try makes the same release as the earlier one would have, and
costs no budget.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from quietcorpus.transforms.errors import StoreUnavailable, WorkerLost, client_errors
from quietcorpus.transforms.finished import records_in, with_records
from quietcorpus.transforms.shards import Written, data_file

from ..jobs.job import Job
from ..storage.files import listed
from ..terminal.progress import Steps

_LOGGER = logging.getLogger("quietcorpus.release")
_T = TypeVar("_T")

TRIES = 4
"""The number of tries of a job, which is Spark's number of tries of a task."""


def persistently(attempt: Callable[[int], _T], steps: Steps, tries: int = TRIES) -> _T:
    """Return the result of an attempt, which is given the number of attempts before it.

    It is made again if it lost a worker, or a store that may come back.
    """
    begun = steps.number
    for number in range(tries - 1):
        try:
            return attempt(number)
        except (WorkerLost, StoreUnavailable) as error:
            lost = "a worker was lost" if isinstance(error, WorkerLost) else "a store was gone"
        _LOGGER.warning("%s: the job is run again, try %d of %d", lost, number + 2, tries)
        steps.again(begun)
    return attempt(tries - 1)


def tried(job: Job, earlier: Sequence[str], number: int) -> Job:
    """Return the job of a try, after `number` others, with the records that these have left.

    `earlier` holds the staging areas of runs that were killed. The files of each try are apart from
    the others', and the records of all are in one place.
    """
    assert job.finished is not None
    staging = job.finished.staging
    own = replace(job.finished, earlier=(*earlier, staging) if number else tuple(earlier))
    found: list[str] = []
    for area in own.earlier:
        with client_errors(f"output: {area}", "cannot be listed; check the permissions"):
            found += listed(f"{records_in(area, own.identity)}/*")
    return replace(
        job,
        shards=with_records(job.shards, found),
        staging=f"{staging}/again-{number}" if number else staging,
        finished=own,
    )


def tell_kept(job: Job, written: Sequence[Written]) -> None:
    """Log how many of the shards that had a record were kept, and how many were not."""
    total = len(job.shards)
    recorded = {data_file(one.number, total) for one in job.shards if one.records}
    own = f"{job.staging}/data/"
    made = {file.path for file in written if file.staged.startswith(own)}
    if kept := recorded - made:
        _LOGGER.info("%d of %d shards were finished before, and are kept", len(kept), total)
    if changed := recorded & made:
        _LOGGER.warning(
            "%d shards that were finished before are not as they were written, and were made again",
            len(changed),
        )
