"""One release from spec to published files."""

from __future__ import annotations

import hashlib
import logging
import posixpath
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from functools import partial
from typing import Any

import apache_beam as beam
from pydantic import BaseModel

from indexes.tokenizer import DESCRIPTION
from mechanisms.guarantees import LimitedPrecision, Spending, compose, round_up
from mechanisms.keystream import ReleaseKey
from pipelines import bag_of_words, card, histogram, readme, storage
from pipelines.card import Card
from pipelines.engine import Engine
from pipelines.job import Job
from pipelines.keys import WorkerKey, master_key
from pipelines.manifest import read_manifest
from pipelines.progress import Observer
from pipelines.spec import BagOfWordsSpec, Spec
from pipelines.version import software
from transforms import vocabulary
from transforms.artefacts import Artefact
from transforms.documents import Corpus
from transforms.errors import InputError
from transforms.shards import ROW_GROUP_ROWS, Tally, Written, make_shards
from transforms.sources import plan

_LOGGER = logging.getLogger("quietcorpus.release")


def release(spec: Spec, engine: Engine, *, quiet: bool) -> Card:
    """Make and publish a release; raises InputError for anything that a person can mend."""
    storage.refuse_existing(spec.output)
    artefacts = _check_artefacts(spec)
    if spec.rejects:
        storage.probe("rejects.path", spec.rejects.path)
    given = spec.input
    planned = plan(Corpus(given.path, given.text, given.id, given.keep))
    with master_key(local=engine.local) as master, storage.staging_area(spec.output) as staging:
        key = ReleaseKey.derive(master, spec.release)
        shards = make_shards(planned.splits, key.stage("shards", b""))
        worker_key = WorkerKey(spec.release, key.fingerprint)
        job = Job(spec, planned, shards, worker_key, staging, artefacts)
        engine.run(_builder(job), Observer(planned.documents, _passes(spec), quiet=quiet))
        files, tally = read_manifest(staging)
        _check_tally(tally, spec)
        made = _card(spec, files, tally, artefacts)
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
        if size is not None and bins is not None and bins > size:
            raise InputError(
                f"mechanism.compression.size: {bins} is larger than the vocabulary of {size} "
                f"terms; give at most {size}"
            )
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


def _card(
    spec: Spec, files: Sequence[Written], tally: Tally, artefacts: dict[str, Artefact]
) -> Card:
    size = next(file.rows for file in files if file.path == histogram.VOCABULARY)
    mechanism = spec.mechanism
    resolved: dict[str, Any] = _resolved(mechanism)
    resolved |= {"tokenizer": DESCRIPTION, "vocabulary_size": size}
    figure = None
    if isinstance(mechanism, BagOfWordsSpec):
        spendings = bag_of_words.spendings(mechanism, size)
        documents = bag_of_words.parameters(mechanism).mechanism(
            size, mechanism.compression.size or size
        )
        resolved |= {"bins": documents.bins, "noise_rate": str(documents.rate)}
        if documents.papers_epsilon != documents.guarantee.epsilon:
            figure = _papers_figure(documents.papers_epsilon, spendings)
    else:
        spendings = histogram.spendings(mechanism)
    total = compose(spendings)
    return Card(
        release=spec.release,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        mechanism=resolved,
        guarantee=card.guarantee(total, _not_protected(spec, total)),
        budget=card.budget(spendings, total),
        papers_figure=figure,
        artefacts=[
            card.Artefact(
                name=name,
                uri=_without_folders(found.uri),
                digest=found.digest,
                provenance="public",
            )
            for name, found in artefacts.items()
        ],
        counts=card.Counts(documents=tally.documents, rejected=tally.rejected),
        columns=list(spec.input.keep),
        files=[card.File(path=f.path, sha256=f.sha256, rows=f.rows) for f in files],
        readme_sha256="0" * 64,  # of a text that is rendered from the rest of this card
        software=software(),
    )


def _resolved(value: Any) -> Any:
    """The spec's block in plain JSON values."""
    if isinstance(value, BaseModel):
        fields = {name: getattr(value, name) for name in type(value).model_fields}
        return {name: _resolved(inner) for name, inner in fields.items() if inner is not None}
    if isinstance(value, Fraction):
        return round_up(value)
    if isinstance(value, str) and value.startswith("/"):
        return _without_folders(value)
    return getattr(value, "value", value)


def _without_folders(uri: str) -> str:
    """A local path says where things lie on somebody's machine: its last part is enough."""
    return posixpath.basename(uri) if storage.is_local(uri) else uri


def _papers_figure(epsilon: Fraction, spendings: Sequence[Spending]) -> card.PapersFigure:
    others = sum((s.guarantee.epsilon for s in spendings[:-1]), start=Fraction(0))
    return card.PapersFigure(
        epsilon=round_up(epsilon + others),
        explanation=(
            "It gives each of the vocabulary's terms a budget and lets the bins share them. It is "
            "not a bound on what a reader can learn; the guarantee above is."
        ),
    )


def _not_protected(spec: Spec, total: LimitedPrecision) -> list[str]:
    k_times = "at k times epsilon only" + (
        ", and with a delta that grows faster than k" if total.delta else ""
    )
    unique = "checked by the id column" if spec.input.id else "not checked: no id column is named"
    lines = [
        "that a document is in the corpus, the number of documents, and the number of unreadable "
        "records",
        f"what changes a bag of words by more than {total.precision} in L1: k times as much is "
        f"protected {k_times}",
        "a document's length, beyond what the precision hides; a row's counts are noisy, and "
        "clipped at zero, so that they add up to more words than the document has",
        "what several documents of one person say together, or one document that the corpus holds "
        f"twice ({unique}): the unit is a passage of one document",
        "how the input was divided into files and row groups, by their numbers of documents",
        "anything from whoever runs the release and sees the text: the histogram is made from "
        "exact counts by that party, whom the documents' authors must trust",
        "which documents have changed, if an altered corpus is released under the same id and "
        "master key: give every release an id of its own",
        "anything against an adversary who holds the master key, or breaks AES-256 or BLAKE2b",
    ]
    if spec.input.keep:
        names = ", ".join(spec.input.keep)
        lines.insert(
            0,
            f"the columns {names}: copied as they are, and joinable with other data",
        )
    if isinstance(spec.mechanism, BagOfWordsSpec):
        lines.append(
            "roughly where in the input a row comes from: rows are shuffled within a row group of "
            f"at most {ROW_GROUP_ROWS:,} rows, and the last one of a file may hold few"
        )
    return lines
