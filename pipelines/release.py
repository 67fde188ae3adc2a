"""One release from spec to published files."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Sequence
from contextlib import nullcontext

from mechanisms.keystream import ReleaseKey
from pipelines import completed, readme, storage
from pipelines.card import Card
from pipelines.claims import identity
from pipelines.describe import describe
from pipelines.engine import Engine
from pipelines.interruption import interruptible
from pipelines.job import Job
from pipelines.keys import WorkerKey, configured_master_key, master_key
from pipelines.kind import Kind
from pipelines.kinds import prepare
from pipelines.ledger.holding import Held, hold
from pipelines.manifest import read_manifest
from pipelines.progress import Observer, shards_counted
from pipelines.publishing import Area, area
from pipelines.spec import Spec
from transforms.errors import InputError, StageError
from transforms.identifiers import DIGEST_BYTES, kept
from transforms.shards import Tally, Written, data_file, make_shards
from transforms.sources import plan

_LOGGER = logging.getLogger("quietcorpus.release")


def release(spec: Spec, engine: Engine, begins: Callable[[], None], *, quiet: bool) -> Card:
    """Make and publish a release; raises InputError for anything that a person can mend.

    `begins` is called when the release may exist from then on.
    """
    completed.refuse_existing(spec)
    _require_key(spec)
    kind = prepare(spec, engine.workers)
    if spec.checkpoints:
        storage.probe("checkpoints", spec.checkpoints)
    if spec.rejects and storage.is_local(spec.rejects.path):
        storage.probe("rejects.path", spec.rejects.path)
    planned = plan(spec.corpus)
    with master_key(local=engine.local) as master:
        key = ReleaseKey.derive(master, spec.release)
        run = identity(spec, planned, kind, key)
        held = None if engine.dry else hold(spec, kind, key, run)
        shards = make_shards(planned.splits, key.stage("shards", b""))
        source = WorkerKey(spec.release, key.fingerprint)
        observer = Observer(planned.documents, kind.passes, quiet=quiet)

        def make(staging: str) -> Job:
            job = Job(spec, planned, shards, source, staging, engine.workers, quiet)
            counted = kind.has_documents and not engine.local
            with shards_counted(staging, len(shards)) if counted else nullcontext():
                engine.run(lambda pipeline: kind.build(pipeline, job), observer)
            return job

        if engine.dry:  # it claims nothing: this very release may be under way
            make(f"{spec.output}.dry-run")
        with area(spec.output, spec.release, run) as place:
            return _publish(make(place.staging), kind, place, held, begins)


def _require_key(spec: Spec) -> None:
    """What outlives a run is of use to none that lacks its master key."""
    named = [line for line in ("checkpoints", "ledger") if getattr(spec, line)]
    if named and configured_master_key() is None:
        raise InputError(
            f"{named[0]}: nothing goes on from there without the same master key; set "
            "QUIETCORPUS_MASTER_KEY or QUIETCORPUS_MASTER_KEY_FILE, or drop the line"
        )


def _publish(
    job: Job, kind: Kind, place: Area, held: Held | None, begins: Callable[[], None]
) -> Card:
    """Publish what the job wrote, if it makes a release, once its budget is spent."""
    spec = job.spec
    written, tally = read_manifest(place.staging)
    _check_tally(tally, spec)
    if len({file.path for file in written}) < len(written):
        raise StageError("the engine doubled a part; run again, on another engine if that repeats")
    if kind.has_documents:
        _check_files(written, tally, len(job.shards))
    kind.check(tally)
    with interruptible():
        files = kind.finish(job, written)
    created, counted = (held.created, held.on_the_card) if held else (place.created, None)
    made = describe(spec, kind, files, tally, created, counted)
    text = readme.render(made)
    made = made.model_copy(update={"readme_sha256": hashlib.sha256(text.encode()).hexdigest()})
    if held:
        held.commit(made, _identifiers(job, tally))
    place.publish(files, {storage.README: text, storage.CARD: made.to_json()}, begins)
    return made


def _identifiers(job: Job, tally: Tally) -> bytes | None:
    """The digests of the documents' ids, where the ledger compares them."""
    if job.identifiers is None:
        return None
    found = kept(job.identifiers)
    if len(found) != DIGEST_BYTES * tally.documents:
        raise StageError("the engine lost the digests of some ids; run again")
    return found


def _check_files(files: Sequence[Written], tally: Tally, shards: int) -> None:
    """An engine may retry and repeat, but must neither lose nor double a shard."""
    data = sorted(file.path for file in files if file.path.startswith("data/"))
    rows = sum(file.rows for file in files if file.path.startswith("data/"))
    if data != [data_file(number, shards) for number in range(shards)] or rows != tally.documents:
        raise StageError(
            f"the engine lost or doubled a part: {len(data)} files of {shards}, {rows} rows of "
            f"{tally.documents}; run again, on another engine if that repeats"
        )


def _check_tally(tally: Tally, spec: Spec) -> None:
    """Refuse to publish an empty corpus, or one with too many unreadable records."""
    total = tally.documents + tally.rejected
    if tally.documents == 0:
        unreadable = f": all {tally.rejected} records are unreadable" if tally.rejected else ""
        raise InputError(f"input.path: {spec.input.path} holds no documents{unreadable}")
    if tally.first is None:
        return
    tolerated = spec.rejects.max_share if spec.rejects else 0.0
    where = f"{tally.first.source} record {tally.first.row}: {tally.first.reason}"
    if tally.rejected > tolerated * total:
        remedy = "raise rejects.max_share" if spec.rejects else "name a place in rejects.path"
        raise InputError(
            f"input.path: {tally.rejected} of {total} records are unreadable, more than the "
            f"tolerated share of {tolerated:g} (the first is {where}); mend them, or {remedy}"
        )
    _LOGGER.warning("%d of %d records are unreadable (first: %s)", tally.rejected, total, where)
