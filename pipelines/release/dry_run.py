"""A dry run: what a release would promise, cost and take, before anything is spent or written.

It checks what a release checks before it begins, in the same order, and stops there: it claims no
output, stages nothing and reserves no budget. No store is asked whether it can be written to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.transforms.reading.documents import Plan

from ..card import statements
from ..card.model import Card
from ..card.parameters import Parameters
from ..environment.keys import master_key
from ..environment.signing import RELEASE_KEY, configured_key
from ..jobs.kind import Kind
from ..ledger.plan import of_run
from ..runners.engine import Engine
from ..schema.spec import Spec
from ..schema.values import Reason
from ..terminal.progress import Steps
from . import existing, needs
from .describe import counts_are_told
from .identity import run as run_of
from .release import begun, heed_columns
from .sample import Sample, Unsampled, timed


@dataclass(frozen=True)
class DryRun:
    """A release as it would be.

    Attributes:
        output: the place of the release.
        complete: whether it is there already, and `if_exists="ok"` would do nothing more; then its
            card is all that the rest tells.
        statement: the guarantee in words, as the card's `guarantee.statement`.
        total: the cost, as the card's `budget.total`.
        inherited: the cost to the data of private artefacts, as the card's `budget.inherited`.
        together: the cost of both to a person who is one unit in each corpus, as the card's
            `budget.together`; None where they do not add.
        accepted: what the spec accepts by name, which is refused otherwise.
        weaknesses: what is not protected though a reader might expect it, as the log warns of it.
        ledger: the answer of the ledger, without the keys `spec` and `cost` of an entry of
            `quietcorpus.ledger.plan`; None for a spec without a ledger.
        told: whether the release tells how many documents there are; else nothing here does.
        documents: their number, if the release tells it and every file states it.
        noise: the noise that is to be expected, in sentences.
        sample: what documents take in one process, by a sample of generated text: `of(documents)`
            returns seconds and bytes. If there is no sample, its `reason` says why.
    """

    output: str
    complete: bool
    statement: str
    total: Parameters
    inherited: Sequence[dict[str, Any]]
    together: Parameters | None
    accepted: Sequence[Reason]
    weaknesses: Sequence[str]
    ledger: dict[str, Any] | None
    told: bool
    documents: int | None
    noise: Sequence[str]
    sample: Sample | Unsampled


def dry_run(
    spec: Spec,
    beam_options: Sequence[str] = (),
    workers: int = 1,
    *,
    existing_is_ok: bool = False,
    strict: bool = False,
    progress: bool = False,
) -> DryRun:
    """Check a release and foresee it; raises InputError for what a release would refuse.

    The refusal of the ledger is not raised: it is in the result, beside all the rest. With
    `progress`, a bar is shown.
    """
    steps = Steps(2, bar=progress)
    engine = Engine(beam_options, workers)
    needs.check(spec, writing=False)
    card = existing.standing(spec) if existing_is_ok else None
    if card is not None:
        return _of_card(spec, card)
    existing.refuse_existing(spec)
    with steps.step("preparing"):
        configured_key(RELEASE_KEY)  # raises what the run would raise
        kind, planned, weaknesses = begun(spec, workers, strict=strict)
    with master_key(local=engine.local) as master:
        key = ReleaseKey.derive(master, spec.release, planned.corpus_digest(spec.corpus))
        identity = run_of(spec, planned, kind, key).identity
        answer = of_run(spec, kind, key, identity)
        if not (answer and answer["refused"]):
            heed_columns(spec, kind, planned, strict=strict)
        total, artefacts = kind.cost, kind.artefacts
        noise = kind.concentrated if statements.inherited(artefacts) else None
        # No stage, as some are known after a run alone; all else is the card's.
        spent = statements.budget([], total, artefacts, noise)
        told = counts_are_told(kind, total)
        with steps.step("timing a sample of generated documents"):
            sample = _sampled(spec, kind, planned, engine, beam_options, told=told)
        return DryRun(
            output=spec.output,
            complete=False,
            statement=statements.statement(total, artefacts, counted=told, noise=noise),
            total=spent.total,
            inherited=spent.inherited,
            together=spent.together,
            accepted=spec.accept,
            weaknesses=[one.said for one in weaknesses],
            ledger=answer,
            told=told,
            documents=planned.documents if told else None,
            noise=list(kind.expected_noise),
            sample=sample,
        )


def _of_card(spec: Spec, card: Card) -> DryRun:
    """Return the dry run of an existing release, which is not checked further."""
    return DryRun(
        output=spec.output,
        complete=True,
        statement=card.guarantee.statement,
        total=card.budget.total,
        inherited=card.budget.inherited,
        together=card.budget.together,
        accepted=card.accepted or [],
        weaknesses=[],
        ledger=None,
        told=card.counts is not None,
        documents=card.counts.documents if card.counts else None,
        noise=[],
        sample=Unsampled("the release is there"),
    )


def _sampled(
    spec: Spec,
    kind: Kind,
    planned: Plan,
    engine: Engine,
    beam_options: Sequence[str],
    *,
    told: bool,
) -> Sample | Unsampled:
    if not told:
        return Unsampled("it would tell about how many documents there are, as the card does not")
    if not engine.local:
        return Unsampled("a sample on this machine says nothing of a cluster")
    return timed(spec, kind, planned, Engine(beam_options, 1))
