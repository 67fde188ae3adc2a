"""The shards that a run keeps of earlier tries, of its own or of a run that was killed."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from quietcorpus.pipelines.kinds.job import Job
from quietcorpus.pipelines.storage.files import listed
from quietcorpus.transforms.finished import FinishedShards, records_in, with_records
from quietcorpus.transforms.shards import Shard, Written, data_file

_LOGGER = logging.getLogger("quietcorpus.release")


def resumed(shards: Sequence[Shard], finished: FinishedShards) -> list[Shard]:
    """Return shards with the records that earlier tries have left; raises what a store raises."""
    folders = [records_in(staging, finished.identity) for staging in finished.earlier]
    return with_records(shards, [uri for folder in folders for uri in listed(f"{folder}/*")])


def tell_kept(job: Job, written: Sequence[Written]) -> None:
    """Log how many of the shards that had a record were kept, and how many were not."""
    total = len(job.shards)
    recorded = {data_file(one.number, total) for one in job.shards if one.records}
    own = f"{job.staging}/"
    made = {file.path for file in written if file.staged.startswith(own)}
    if kept := recorded - made:
        _LOGGER.info("%d of %d shards were finished before, and are kept", len(kept), total)
    if changed := recorded & made:
        _LOGGER.warning(
            "%d shards that were finished before are not as they were written, and were made again",
            len(changed),
        )
