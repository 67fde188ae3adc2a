"""One release from spec to published files."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from functools import partial

import apache_beam as beam

from mechanisms.keystream import ReleaseKey
from pipelines import bag_of_words, histogram, readme, storage
from pipelines.card import Card
from pipelines.describe import describe
from pipelines.engine import Engine
from pipelines.job import Job
from pipelines.keys import WorkerKey, master_key
from pipelines.manifest import read_manifest
from pipelines.progress import Observer
from pipelines.spec import BagOfWordsSpec, Spec
from transforms import vocabulary
from transforms.artefacts import Artefact
from transforms.codebook import check_size
from transforms.errors import InputError
from transforms.shards import Tally, make_shards
from transforms.sources import plan

_LOGGER = logging.getLogger("quietcorpus.release")


def release(spec: Spec, engine: Engine, *, quiet: bool) -> Card:
    """Make and publish a release; raises InputError for anything that a person can mend."""
    storage.refuse_existing(spec.output)
    artefacts = _check_artefacts(spec)
    if spec.rejects:
        storage.probe("rejects.path", spec.rejects.path)
    planned = plan(spec.input.corpus)
    with master_key(local=engine.local) as master, storage.staging_area(spec.output) as staging:
        key = ReleaseKey.derive(master, spec.release)
        shards = make_shards(planned.splits, key.stage("shards", b""))
        worker_key = WorkerKey(spec.release, key.fingerprint)
        job = Job(spec, planned, shards, worker_key, staging, artefacts)
        engine.run(_builder(job), Observer(planned.documents, _passes(spec), quiet=quiet))
        files, tally = read_manifest(staging)
        _check_tally(tally, spec)
        made = describe(spec, files, tally, artefacts)
        text = readme.render(made)
        made = made.model_copy(update={"readme_sha256": hashlib.sha256(text.encode()).hexdigest()})
        texts = {storage.README: text, storage.CARD: made.to_json()}
        storage.publish(spec.output, staging, files, texts)
    return made


def _builder(job: Job) -> Callable[[beam.Pipeline], None]:
    mechanism = job.spec.mechanism
    if isinstance(mechanism, BagOfWordsSpec):
        return partial(bag_of_words.build, job=job, spec=mechanism)
    return partial(histogram.build, job=job, spec=mechanism)


def _passes(spec: Spec) -> int:
    """How often every document is read."""
    private = spec.mechanism.vocabulary.private is not None
    if not isinstance(spec.mechanism, BagOfWordsSpec):
        return 1 + private
    return 1 + private + (spec.mechanism.histogram_epsilon is not None)


def _check_artefacts(spec: Spec) -> dict[str, Artefact]:
    """Find the public artefacts, and check them as far as can be before anything starts."""
    mechanism = spec.mechanism
    found: dict[str, Artefact] = {}
    size = None
    if mechanism.vocabulary.public is not None:
        artefact = Artefact.found("mechanism.vocabulary.public", mechanism.vocabulary.public)
        found["vocabulary"] = artefact
        size = len(vocabulary.load(artefact))
    if isinstance(mechanism, BagOfWordsSpec):
        bins, embedding = mechanism.compression.size, mechanism.compression.embedding
        if size is not None and bins is not None:
            check_size(bins, size)
        if embedding is not None:
            key = "mechanism.compression.embedding.public"
            found["embedding"] = Artefact.found(key, embedding.public)
    return found


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
