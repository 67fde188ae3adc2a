"""An audit of a spec's mechanisms, at its own parameters, against their stated guarantees."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from quietcorpus.evaluation.audits.findings import Exact, Sampled, run
from quietcorpus.mechanisms.accounting.guarantees import shown_up
from quietcorpus.transforms.errors import StageError

from .. import registry
from ..jobs.kind import prepare
from ..schema.spec import Spec
from ..storage import files as storage
from ..storage.output import result_files
from ..terminal.progress import Steps, table

RESULT = "audit.json"
SCHEMA_VERSION = 1
CONFIDENCE = 0.9999
DRAWS = 100_000
_COLUMNS = "audit", "way", "stated", "found", "at delta", "verdict"


def audit(
    spec: Spec,
    output: str | None = None,
    *,
    draws: int = DRAWS,
    confidence: float = CONFIDENCE,
    steps: Steps | None = None,
) -> dict[str, Any]:
    """Audit the mechanisms that a release of `spec` would run, and write the findings.

    The corpus is not read: inputs are made up, from public artefacts where necessary.

    Args:
        spec: the spec of the release.
        output: an absolute path of a folder or an object-store URI, still empty, in which
            `audit.json` is written; None to write nothing.
        draws: the number of draws of each input, for the audits that draw.
        confidence: the confidence of all audits together: mechanisms that keep to their statements
            pass every audit with at least this probability.
        steps: the steps of a command, of which the audits are one; not shown by default.

    Returns:
        The content of `audit.json`.

    Raises:
        InputError: anything that a person can fix; nothing is written then.
    """
    with result_files(output, last=RESULT) as files:
        audits = audits_of(spec)
        findings = list(
            (steps or Steps(1, bar=False)).each(
                run(audits, draws, confidence), len(audits), "auditing", "audits"
            )
        )
        content = {
            "schema_version": SCHEMA_VERSION,
            "spec": spec.release,
            "kind": spec.mechanism.kind,
            "confidence": confidence,
            "passed": all(finding.passed for finding in findings),
            "audits": [_finite(asdict(finding)) for finding in findings],
        }
        files[RESULT] = storage.as_json(content)
    return content


def audits_of(spec: Spec) -> list[Exact | Sampled]:
    """Return the audits of the mechanisms of a spec; raises InputError for one that cannot run."""
    found: list[Exact | Sampled] = registry.part_of(spec.mechanism, "audits")(prepare(spec))
    return found


def lines(content: Mapping[str, Any]) -> Iterator[str]:
    """Yield the findings as lines for a terminal."""
    yield from table(_COLUMNS, map(_row, content["audits"]))
    yield ""
    yield (
        f"confidence  {content['confidence']:g}: mechanisms that keep to all of these statements "
        f"fail an audit with a chance of at most {1 - content['confidence']:.2g}"
    )
    yield "input       made up, of the spec and its public artefacts alone: no corpus was read"
    failed = [finding for finding in content["audits"] if not finding["passed"]]
    for finding in failed:
        yield f"failed      {finding['name']}: {finding['says']}"
        if finding["event"]:
            yield f"            by the event that {finding['event']}"
    for finding in content["audits"]:
        if finding["verdict"] == "cannot tell":
            yield f"cannot tell {finding['name']}: this could not have shown a fault"
    if not failed:
        yield "found       nothing that is more than what is stated"


def refuse(content: Mapping[str, Any]) -> None:
    """Raise StageError if an audit failed."""
    failed = [finding for finding in content["audits"] if not finding["passed"]]
    if failed:
        worst = failed[0]
        raise StageError(
            f"audit: {len(failed)} of {len(content['audits'])} audits failed; {worst['name']}: "
            f"{worst['found']:.6g} is more than the {shown_up(worst['stated'])} that is stated: "
            "release nothing"
        )


def _row(finding: Mapping[str, Any]) -> tuple[str, ...]:
    delta = finding["delta"]
    return (
        finding["name"],
        finding["way"],
        shown_up(finding["stated"]),
        ("" if finding["way"] == "exact" else ">= ") + f"{finding['found']:.6g}",
        "" if delta is None else shown_up(delta, 3),
        finding["verdict"] if finding["passed"] else "FAILED",
    )


def _finite(finding: dict[str, Any]) -> dict[str, Any]:
    """Replace infinity, which JSON lacks, by the largest float."""
    if math.isinf(finding["found"]):
        finding["found"] = sys.float_info.max
    return finding
