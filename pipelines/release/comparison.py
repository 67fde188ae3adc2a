"""The comparison of a partition's ids with those of others, before any noise is drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import apache_beam as beam

from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.transforms.errors import StageError
from quietcorpus.transforms.identify import IdentifyDocuments
from quietcorpus.transforms.reading.identifiers import DIGEST_BYTES, TAG, kept
from quietcorpus.transforms.shards import TALLIES, Tally

from ..jobs.job import Job, refuse_repeated, splits_of
from ..jobs.run_files import WriteRunFiles, read_run_files
from .tallies import check_passes, check_unchanged


def identify(
    job: Job, key: ReleaseKey, run: Callable[[Callable[[beam.Pipeline], None]], None]
) -> bytes:
    """Return the digests of the ids of a job's documents, by a separate pipeline.

    `run` runs a pipeline that the given function builds. Records that cannot be read are left to
    the passes that follow. Raises InputError if an id repeats, and StageError if the engine lost
    some of them, or if the corpus was changed since it was planned.
    """
    own = replace(job, staging=f"{job.staging}/compared")

    def build(pipeline: beam.Pipeline) -> None:
        found = splits_of(pipeline, own) | "identify" >> beam.ParDo(
            IdentifyDocuments(own.corpus, own.key)
        ).with_outputs(TALLIES, TAG)
        refuse_repeated(found[TAG], own)
        (found[TALLIES],) | "run files" >> WriteRunFiles(own.staging, own.key)

    run(build)
    _, tally = read_run_files(own.staging, key)
    check_passes(tally, 1, own.plan.splits)
    check_unchanged(own)
    return identifiers(own, tally, key)


def identifiers(job: Job, tally: Tally, key: ReleaseKey) -> bytes:
    """Return the digests of the ids that a job kept; raises StageError if some are missing."""
    assert job.identifiers is not None
    found = kept(job.identifiers, key)
    if len(found) != DIGEST_BYTES * tally.documents:
        raise StageError("the engine lost the digests of some ids; run again")
    return found
