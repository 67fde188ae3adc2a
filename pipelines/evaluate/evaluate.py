"""The job of `quietcorpus evaluate`: measure a release, and write the report."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any

from quietcorpus.evaluation import results
from quietcorpus.evaluation.report import render
from quietcorpus.evaluation.results import MeasuredDraw, Setting
from quietcorpus.evaluation.verdict import Figure, strongest, verdict
from quietcorpus.transforms.artefacts.files import FileSource
from quietcorpus.transforms.errors import InputError, require_installed
from quietcorpus.transforms.reading.documents import Corpus
from quietcorpus.transforms.reading.sources import plan

from ..audit.audit import audit
from ..card.parameters import total_cost
from ..card.weakness import in_short, in_words, of_guarantee, of_words
from ..environment.version import environment_digest, software
from ..storage import files as storage
from ..storage import places
from ..storage.places import inside
from ..terminal.progress import Steps
from . import sweep
from .comparison import Comparison
from .corpus import alone
from .findings import Findings, key_numbers
from .headline import headline
from .recommendations import recommendations
from .study import LEAST_OF_CLASS, labelled

REPORT, CONTENT, ROWS, TOPICS, DRAWS = (
    "evaluation.html",
    "evaluation.json",
    "evaluation.parquet",
    "topics.json",
    "draws",
)
_MODULES = ("sklearn", "tomotopy", "gensim", "matplotlib", "jinja2")
_PACKAGES = ("scikit-learn", *_MODULES[1:])
_DRAWS = 3


@dataclass(frozen=True)
class Effort:
    """The extent of an evaluation, and the processes for it.

    Attributes:
        draws: the number of draws of each setting.
        settings: the settings of a sweep, in addition to the release's own.
        workers: the number of processes.
        audit: whether to audit the spec as well.
        topics: whether to write the release's topics beside the original's.
        progress: whether to show a bar.
    """

    draws: int
    settings: Sequence[Setting]
    workers: int
    audit: bool
    topics: bool
    progress: bool

    @classmethod
    def of(
        cls,
        comparison: Comparison,
        draws: int | None,
        settings: Sequence[Setting],
        workers: int,
        *,
        audit: bool,
        topics: bool,
        progress: bool,
    ) -> Effort:
        """Build an effort, with the usual draws by default; raises InputError for too many."""
        if comparison.spec is None and (draws or 1) > 1:
            raise InputError("spec: missing; the spec says what further draws release")
        if topics and not comparison.measures.has_topics:
            raise InputError(
                f"topics: a release of the kind {comparison.card.mechanism.kind} has none; leave "
                "it out"
            )
        many = draws or (_DRAWS if comparison.spec else 1)
        return cls(many, settings, workers, audit, topics, progress)


def require() -> None:
    """Raise InputError if a package that measures or plots is not installed."""
    require_installed(*_MODULES, extra="evaluate")


def evaluate(comparison: Comparison, output: str, effort: Effort) -> dict[str, Any]:
    """Measure a release, and write the report, its content and all observations.

    Args:
        comparison: the release and the corpus.
        output: a folder or an object-store URI. It keeps every draw's result, so that a stopped
            run can go on, and may hold results of an earlier run of the same evaluation.
        effort: the extent of the evaluation.

    Returns:
        The content of `evaluation.json`.

    Raises:
        InputError: anything that a person can fix; no report is written then.
    """
    if inside(output, comparison.release):
        raise InputError(f"output: {output} lies in the release; name a place of its own")
    if comparison.spec is None and effort.settings:
        raise InputError("spec: missing; the spec says what the draws of a sweep release")
    steps = Steps(3 + (effort.audit and comparison.spec is not None), bar=effort.progress)
    with steps.step("reading the release and the corpus"):
        comparison.check(effort.settings)
        neighbours = {word: comparison.study.neighbours(word) for word in comparison.neighbours_of}
    tasks = _tasks(comparison, effort)
    if places.is_local(output):
        try:
            os.makedirs(output, mode=0o700, exist_ok=True)  # its owner's alone
        except OSError:
            raise InputError(
                f"output: {output} cannot be made; name a folder that can be written to"
            ) from None
    storage.probe("output", output)
    _refuse_another(output, comparison.digest)
    done = sweep.Done(f"{output}/{DRAWS}", _identity(comparison))
    measured = sweep.run(comparison, tasks, done, effort.workers, steps)
    _refuse_strangers(measured, len(comparison.sample))
    order = {task: number for number, task in enumerate(tasks)}
    measured.sort(key=lambda one: order[one.setting, one.draw])
    audits = _audited(comparison, steps) if effort.audit else None
    with steps.step("writing the report"):
        content = {**_content(comparison, measured, audits), "neighbours": neighbours}
        _write(content, measured, output)
        if effort.topics:
            storage.write_whole(
                f"{output}/{TOPICS}", storage.as_json(list(comparison.paired_topics()))
            )
    return content


def _write(content: dict[str, Any], measured: Sequence[MeasuredDraw], output: str) -> None:
    """Write the report, its content and all observations."""
    files = {
        ROWS: results.table(measured),
        CONTENT: storage.as_json(content),
        REPORT: render(content).encode(),
    }
    for name, data in files.items():
        storage.write_whole(f"{output}/{name}", data)


def _refuse_another(output: str, digest: str) -> None:
    """Raise InputError if `output` holds the report of another release."""
    place = f"{output}/{CONTENT}"
    if not storage.exists(place):
        return
    try:
        found = json.loads(storage.read_bytes(place))["release"]["card_sha256"]
    except (ValueError, KeyError, TypeError, RecursionError):
        found = None
    if found != digest:
        raise InputError(
            f"output: {output} holds the report of another release; name a place of its own"
        )


def _refuse_strangers(measured: Sequence[MeasuredDraw], documents: int) -> None:
    """Raise InputError if far fewer of the release's rows are linked than of a fresh draw's.

    Both follow one law, so a gap of six deviations has a probability below 1e-8 by chance. Such a
    gap shows that the corpus has other texts under the same ids.
    """
    shares: dict[int, float] = {}
    for one in measured:
        for seen in one.observations if not one.setting else ():
            if (seen.measure, seen.subject) == ("linkage", "release"):
                shares[one.draw] = max(seen.value, shares.get(one.draw, 0.0))
    if 0 not in shares or len(shares) < 2:
        return
    own, fresh = shares[0], max(share for draw, share in shares.items() if draw)
    spread = math.sqrt((own * (1 - own) + fresh * (1 - fresh)) / documents)
    # 1 / documents keeps the bound above zero where no document is linked, or every one is.
    if fresh - own > 6 * (spread + 1 / documents):
        raise InputError(
            f"against: {own:.1%} of the release's rows are linked to the documents of their ids, "
            f"and {fresh:.1%} of a fresh draw's: these are not the texts that the release was made "
            "of; give those"
        )


def _tasks(comparison: Comparison, effort: Effort) -> list[sweep.Task]:
    if comparison.spec is None:
        return [((), 0)]
    return [(s, draw) for s in ((), *effort.settings) for draw in range(effort.draws)]


def _identity(comparison: Comparison) -> str:
    """Return a digest of all that a draw's result depends on, except its setting and number."""
    files = plan(comparison.columns.corpus(comparison.against)).files
    versions = [version(package) for package in _PACKAGES]
    parts = [asdict(comparison), comparison.card.to_json(), files, environment_digest(), versions]
    if comparison.spec is not None:
        with open(comparison.spec, "rb") as stream:
            parts.append(hashlib.sha256(stream.read()).hexdigest())
    if comparison.public_vectors is not None:
        parts.append(FileSource.resolve("public_vectors", comparison.public_vectors).digest)
    if comparison.public_text is not None:
        parts.append(plan(Corpus(comparison.public_text, comparison.columns.text)).files)
    if comparison.reference_text is not None:
        parts.append(plan(Corpus(comparison.reference_text, comparison.columns.text)).files)
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _content(
    comparison: Comparison, measured: Sequence[MeasuredDraw], audits: dict[str, Any] | None
) -> dict[str, Any]:
    card, sample, columns = comparison.card, comparison.sample, comparison.columns
    study = comparison.study
    found = results.figures(measured)
    findings = _findings(comparison, found, audits)
    total = card.guarantee.parameters.guarantee
    state, sentence = headline(findings)
    numbers = key_numbers(findings, in_short(total, card.meaning))
    return {
        "schema_version": 1,
        "release": {
            "id": card.release,
            "card_sha256": comparison.digest,
            "kind": card.mechanism.kind,
            "created": card.created,
            "cost": total_cost(card.budget.total),
            "statement": card.guarantee.statement,
            "not_protected": card.guarantee.not_protected,
            "documents": card.documents if card.counts else None,
        },
        "corpus": {
            "documents": len(sample),
            "of": sample.of,
            "label": columns.label,
            "user": columns.user,
            "placed": comparison.own.placed,
        },
        "draws": max(one.draw for one in measured) + 1,
        "confidence": results.CONFIDENCE,
        "family": results.FAMILY,
        "measures": results.described(one["measure"] for one in found),
        "figures": found,
        "verdict": {
            "state": state,
            "sentence": sentence,
            "numbers": [one._asdict() for one in numbers],
            "strongest": strongest(found, study.defined or card.guarantee.unit, study.beyond),
            **verdict(found),
        },
        "odds": in_words(total, card.meaning, counted=card.counts is not None),
        "recommendations": recommendations(findings),
        "audits": audits,
        "notes": [*comparison.study.notes, *_notes(comparison)],
        "software": software(),
    }


def _findings(
    comparison: Comparison, figures: Sequence[Figure], audits: dict[str, Any] | None
) -> Findings:
    """Return what rules look at."""
    card = comparison.card
    total = card.guarantee.parameters.guarantee
    weaknesses = of_guarantee(total, card.artefacts)
    if card.meaning is not None:
        weaknesses += of_words(card.meaning)
    audited = (audits or {"audits": []})["audits"]
    return Findings(
        kind=card.mechanism.kind,
        mechanism=card.mechanism.model_dump(mode="json"),
        figures=figures,
        weaknesses=weaknesses,
        failed=[one["name"] for one in audited if not one["passed"]],
        untold=[one["name"] for one in audited if one["verdict"] == "cannot tell"],
        audited=bool(audited),
        id_column=card.id_column,
        alone=alone(comparison.release, card),
        reconstructed=card.reconstruction is not None,
        of_documents=comparison.measures.of_documents,
        whole=len(comparison.sample) == comparison.sample.of,
    )


def _notes(comparison: Comparison) -> list[str]:
    notes = [
        f"This is about the release whose release.json has the SHA-256 {comparison.digest}, and a "
        f"sample of documents by the seed {comparison.seed}."
    ]
    labels = comparison.sample.labels
    if labels is not None:
        rows, classes = labelled(labels)
        notes.append(
            f"{len(rows):,} of {len(labels):,} documents have a label that {LEAST_OF_CLASS} or "
            f"more have, in {len(set(classes.tolist()))} classes; where labels matter, the others "
            "were left out."
        )
    if comparison.spec is None:
        notes.append(
            "No spec was given: the release is the only draw, and no mean has an interval."
        )
    of_documents = comparison.measures.of_documents
    if comparison.columns.label is None:
        also = ", and membership was not inferred" if of_documents else ""
        notes.append(f"No label was named: nothing was classified{also}.")
    if comparison.columns.user is None and of_documents:
        notes.append("No user column was named: authorship was not attacked.")
    if columns_kept := comparison.columns.kept:
        names = ", ".join(map(repr, columns_kept))
        notes.append(
            f"Rows keep {names}: an attacker on a document's row considers only rows that agree "
            "with the document in these columns; the floor of linkage is what these alone link."
        )
    if card_ids := comparison.card.id_column:
        notes.append(
            f"Rows keep the ids {card_ids!r}: an attacker who has these links every row. All "
            "figures are of attackers without them."
        )
    if not comparison.own.placed and of_documents:
        notes.append(
            "Which document a row of the release is of is not known here (no id column was kept "
            "and named): what needs it is measured on fresh draws alone, as far as there are any."
        )
    return notes


def _audited(comparison: Comparison, steps: Steps) -> dict[str, Any] | None:
    """Audit the spec; None if there is none."""
    if comparison.spec is None:
        return None
    found = audit(comparison.described, steps=steps)
    return {key: found[key] for key in ("confidence", "passed", "audits")}
