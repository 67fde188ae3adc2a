"""One release from spec to published files."""

from __future__ import annotations

import hashlib
import logging

from mechanisms.keystream import ReleaseKey
from pipelines import completed, readme, storage
from pipelines.card import Card
from pipelines.claims import identity
from pipelines.describe import describe
from pipelines.engine import Engine
from pipelines.job import Job
from pipelines.keys import WorkerKey, master_key
from pipelines.kind import Kind
from pipelines.kinds import prepare
from pipelines.manifest import read_manifest
from pipelines.progress import Observer
from pipelines.publishing import Area, area
from pipelines.spec import Spec
from transforms.errors import InputError
from transforms.shards import Tally, make_shards
from transforms.sources import plan

_LOGGER = logging.getLogger("quietcorpus.release")


def release(spec: Spec, engine: Engine, *, quiet: bool) -> Card:
    """Make and publish a release; raises InputError for anything that a person can mend."""
    completed.refuse_existing(spec)
    kind = prepare(spec)
    if spec.rejects and storage.is_local(spec.rejects.path):
        storage.probe("rejects.path", spec.rejects.path)
    planned = plan(spec.input.corpus)
    with master_key(local=engine.local) as master:
        key = ReleaseKey.derive(master, spec.release)
        run = identity(spec, planned, kind.artefacts, key)
        with area(spec.output, spec.release, run) as place:
            shards = make_shards(planned.splits, key.stage("shards", b""))
            source = WorkerKey(spec.release, key.fingerprint)
            job = Job(spec, planned, shards, source, place.staging)
            observer = Observer(planned.documents, kind.passes, quiet=quiet)
            engine.run(lambda pipeline: kind.build(pipeline, job), observer)
            return _publish(spec, kind, place)


def _publish(spec: Spec, kind: Kind, place: Area) -> Card:
    """Publish what the job wrote, if it makes a release."""
    files, tally = read_manifest(place.staging)
    _check_tally(tally, spec)
    kind.check(tally)
    made = describe(spec, kind, files, tally, place.created)
    text = readme.render(made)
    made = made.model_copy(update={"readme_sha256": hashlib.sha256(text.encode()).hexdigest()})
    place.publish(files, {storage.README: text, storage.CARD: made.to_json()})
    return made


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
