"""One release from spec to published files."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache

from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.transforms.errors import InputError, NoisyOutcome, StageError
from quietcorpus.transforms.reading.documents import Plan
from quietcorpus.transforms.run_files import read_run_files
from quietcorpus.transforms.shards import Written, make_shards, staged_content
from quietcorpus.transforms.staged import FinishedShards
from quietcorpus.transforms.sums import doubled

from ..card import page
from ..card.model import Card
from ..card.weakness import Weakness, of_documents, of_key, refuse
from ..environment.keys import (
    RELEASE_KEY,
    SigningKey,
    WorkerKey,
    configured_key,
    configured_master_key,
    master_key,
)
from ..jobs import notices
from ..jobs.job import Job
from ..jobs.kind import Kind, prepare
from ..ledger.reservation import HeldReservation, foresee, hold
from ..runners.engine import Engine
from ..runners.interruption import interruptible
from ..schema.spec import Spec
from ..schema.values import Reason, remedied
from ..storage import files as storage
from ..storage import places
from ..storage.output import Output
from ..storage.publishing import Staging
from ..terminal.progress import Display, Numbers, Observer, Steps
from . import existing
from .arrival import arrived
from .describe import Step, counts_are_told, describe
from .existing import TRIES, identify_run, input_digest, log_resumed, persistently, tried
from .monitoring import (
    Build,
    check_files,
    check_opens,
    check_passes,
    check_tally,
    check_unchanged,
    identifiers,
    identify,
    is_unchanged,
    run_watched,
)

_LOGGER = logging.getLogger("quietcorpus.release")
_USERLESS: Reason = "documents-without-user"


def release(
    spec: Spec,
    engine: Engine,
    on_publishing: Callable[[], None],
    *,
    on_step: Callable[[Step], None] = lambda _: None,
    on_progress: Callable[[Numbers], None] = lambda _: None,
    progress: bool = False,
    strict: bool = False,
    wait_for_input: float = 0,
) -> Card:
    """Make and publish a release; raises InputError for anything that a person can fix.

    `on_publishing` is called just before the release is published: from then on it may exist;
    `on_step` at the beginning of each step before, and `on_progress` while a job runs. With
    `strict`, InputError is also raised for what a run would else warn of before it begins. An input
    that is not there yet is waited for, `wait_for_input` minutes; then NoInput is raised.
    """
    existing.refuse_existing(spec)
    with Display("preparing", bar=progress):
        signing = configured_key(RELEASE_KEY)
        kind, planned, weaknesses = prepare_run(
            spec, engine.workers, strict=strict, wait_for_input=wait_for_input
        )
        _probe(spec)
        foresee(spec, kind)
        check_columns(spec, kind, planned, strict=strict)
    with master_key(local=engine.local) as master:
        corpus = planned.corpus_digest(spec.corpus)
        key = ReleaseKey.derive(master, spec.release, corpus)
        run = identify_run(spec, planned, kind, key)
        held = None if engine.dry else hold(spec, kind, key, run.identity)
        compares = held is not None and kind.noise_decides and held.compares_first
        passes = kind.passes if engine.local else 1
        steps = Steps(compares + passes + kind.steps_to_finish + 1, bar=progress)
        shards = make_shards(planned.splits, key.stage("shards", 1))
        source = WorkerKey(spec.release, corpus, key.fingerprint)
        counted = cache(lambda: counts_are_told(kind, kind.cost))

        def told(numbers: Numbers) -> None:
            if "documents" not in numbers or counted():
                on_progress(numbers)

        def job_in(staging: str) -> Job:
            finished = FinishedShards(staging, run.identity)
            return Job(spec, planned, shards, source, staging, engine.workers, steps, finished)

        def work(job: Job, build: Build, parts: int | None = None) -> None:
            observer = Observer(planned.documents, steps, on_progress=told)
            run_watched(engine, build, observer, job, key, parts)

        def make(job: Job) -> Job:
            parts = len(shards) if kind.has_documents else None
            work(job, lambda pipeline: kind.build(pipeline, job), parts)
            return job

        # A dry run claims nothing, since this very release may be under way; it ends in `run`.
        if engine.dry:
            make(job_in(f"{spec.output}.dry-run"))
        with Output(spec.output).staging(run, key) as place:
            job, earlier, tries = job_in(place.staging), place.earlier, TRIES if engine.local else 1
            if held and compares:
                on_step("comparing ids")
                held.compare(
                    persistently(
                        lambda _: identify(job, key, lambda build: work(job, build)), steps, tries
                    )
                )
            try:
                on_step("releasing")
                job = persistently(lambda number: make(tried(job, earlier, number)), steps, tries)
                on_step("checking")
                return _publish(job, kind, weaknesses, key, place, held, signing, on_publishing)
            except Exception as error:
                failure = error
            # Here, no error is being handled that another one would carry along.
            tells = kind.noise_decides or isinstance(failure, NoisyOutcome)
            if held and tells and not _spend(held, job):
                raise StageError(
                    "ledger: the run failed, and its error may not be shown, because its budget "
                    "could not be recorded as spent; check the ledger, and run again"
                )
            raise failure


def _probe(spec: Spec) -> None:
    """Raise InputError for a further folder of the spec's that cannot be written to."""
    if spec.checkpoints:
        storage.probe("checkpoints", spec.checkpoints)
    if spec.rejects and places.is_local(spec.rejects.path):
        storage.probe("rejects.path", spec.rejects.path)


def prepare_run(
    spec: Spec, workers: int, *, strict: bool, wait_for_input: float = 0
) -> tuple[Kind, Plan, list[Weakness]]:
    """Prepare the kind of a release and plan its reading; write nothing.

    Warns of weaknesses, and returns them as well. Raises InputError as `release` does.
    """
    _require_key(spec)
    kind = prepare(spec, workers)
    weaknesses = [*of_key(configured_master_key()), *kind.weaknesses]
    refuse(weaknesses, spec.accept)
    _warn_or_refuse(weaknesses, kind.doubts, strict, spec.accept)
    return kind, arrived(spec, kind, wait_for_input), weaknesses


def check_columns(spec: Spec, kind: Kind, planned: Plan, *, strict: bool) -> None:
    """Warn of columns that would be copied and should not be, or refuse them.

    Refuses a delta as well that is above 1 / documents, where every file states their number, and
    documents without a user, or warns of them.
    """
    if planned.documents is not None:
        refuse(of_documents(kind.cost, planned.documents), spec.accept)
    if kind.has_documents:
        _warn_or_refuse((), notices.check(spec.corpus, planned, spec.accept), strict)
    userless = notices.without_user(spec.corpus, planned)
    if userless and spec.mechanism.needs_users and _USERLESS not in spec.accept:
        raise InputError(f"{userless}; {remedied('give each a user', _USERLESS)}")
    if userless:
        _LOGGER.warning("%s", userless)


def _spend(held: HeldReservation, job: Job) -> bool:
    """Spend the budget of a run that is about to tell how its noise turned out.

    Returns whether the ledger could record it.
    """
    unchanged = False
    with suppress(Exception):  # whatever the corpus's place raises
        unchanged = is_unchanged(job)
    try:
        held.refuse(compared=unchanged)
    except Exception:  # whatever the ledger's place raises
        return False
    return True


def _warn_or_refuse(
    weaknesses: Sequence[Weakness],
    doubts: Sequence[str],
    strict: bool,
    accept: Sequence[Reason] = (),
) -> None:
    """Warn of weaknesses and doubts, or refuse them; each doubt names its remedy itself.

    The run warns of risks that are accepted by name, and does not refuse them.
    """
    others = [one for one in weaknesses if one.reason not in accept]
    if strict and (others or doubts):
        lines = [f"not protected: {one.said}; {one.remedy}" for one in others]
        raise InputError(f"strict: {'; '.join([*lines, *doubts])}")
    for one in weaknesses:
        _LOGGER.warning("not protected: %s", one.said)
    for doubt in doubts:
        _LOGGER.warning("%s", doubt)


def _require_key(spec: Spec) -> None:
    """Refuse checkpoints or a ledger without a configured master key.

    They outlive the run, and no other run can use them without the same key.
    """
    named = [line for line in ("checkpoints", "ledger") if getattr(spec, line)]
    if named and configured_master_key() is None:
        raise InputError(
            f"{named[0]}: a run resumes from there only with the same master key; set "
            "QUIETCORPUS_MASTER_KEY or QUIETCORPUS_MASTER_KEY_FILE"
        )


def _publish(
    job: Job,
    kind: Kind,
    weaknesses: Sequence[Weakness],
    key: ReleaseKey,
    place: Staging,
    held: HeldReservation | None,
    signing: SigningKey | None,
    on_publishing: Callable[[], None],
) -> Card:
    """Check what the job wrote, spend its budget, then publish it."""
    spec = job.spec
    written, tally = read_run_files(job.staging, key)
    check_passes(tally, kind.passes, job.plan.splits)
    check_tally(tally, spec)
    if len({file.path for file in written}) < len(written):
        raise doubled("a file")
    if kind.has_documents:
        check_files(written, tally, len(job.shards))
        notices.require_compared(tally.copies, job.corpus.keep, tally.documents)
    notices.refuse_copies(tally.copies)
    refuse(of_documents(kind.cost, tally.documents), spec.accept)
    kind.check(tally)
    log_resumed(job, written)
    with interruptible():
        files = kind.finish(job, written)
    with job.steps.step("publishing"):
        _check_sealed([*written, *files])
        shown = kind.shown(written, files)
        created, counted = (held.created, held.on_the_card) if held else (place.created, None)
        weak = [one.said for one in (*weaknesses, *shown)]
        found = kind.found(written, files)
        own = input_digest(spec, job.plan, key) if configured_master_key() else None
        made = describe(spec, kind, files, tally, created, counted, weak, found, own)
        check_opens(files, lambda file: staged_content(file, key))
        rows = page.first_rows(made.mechanism, files, lambda file: staged_content(file, key))
        made, texts = page.texts(made, rows, signing)
        check_unchanged(job)
        if held:
            held.commit(made, identifiers(job, tally, key) if job.identifiers else None)
        # After the commit: these warnings reveal something of the noisy outcome, or of the texts.
        _warn_or_refuse(shown, kind.noticed(tally), strict=False)
        place.publish(files, texts, on_publishing)
        return made


def _check_sealed(files: Sequence[Written]) -> None:
    """Check that nothing lay in the open while its reservation could be given back."""
    for file in files:
        if not file.sealed:
            raise StageError(f"{file.path} was staged in the open; run again with other code")
