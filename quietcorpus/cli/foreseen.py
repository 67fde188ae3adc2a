"""The lines of a dry run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from quietcorpus.pipelines.card.parameters import total_cost
from quietcorpus.pipelines.release.dry_run import DryRun, Sample, Unsampled
from quietcorpus.pipelines.schema.values import REASONS
from quietcorpus.pipelines.terminal.progress import duration

_SOME = 1_000  # documents, of a corpus that does not state how many it has
_SIZES = ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB"), (1, "bytes"))


def lines(found: DryRun) -> Iterator[str]:
    """Yield the findings of a dry run, a subject a line."""
    done = " (complete already; nothing would be done)" if found.complete else ""
    yield f"dry run   {found.output}{done}; nothing is spent, and nothing is published"
    yield f"guarantee {found.statement}"
    yield f"cost      {total_cost(found.total)}"
    for other in found.inherited:
        yield f"and       for the data of its {other['artefact']}: {other['statement']}"
    if found.together is not None:
        yield f"together  {total_cost(found.together)}, for a person who is one unit in each corpus"
    yield from (f"accepted  {reason}: {REASONS[reason]}" for reason in found.accepted)
    yield from (f"warning   not protected: {said}" for said in found.weaknesses)
    if not found.complete:
        yield from (f"ledger    {said}" for said in _of_ledger(found.ledger))
    yield f"documents {_documents(found)}"
    if found.complete:
        return
    yield from (f"noise     {said}" for said in found.noise)
    yield f"time      {_time(found.sample, found.documents)}"
    if found.verdict:
        yield f"verdict   {found.verdict}"


def _of_ledger(answer: dict[str, Any] | None) -> Iterator[str]:
    if answer is None:
        yield "none: nothing adds up what the releases of this corpus cost"
        return
    if answer["refused"]:
        yield f"it would refuse the release: {answer['refused']}"
        return
    when = "reserved already" if answer["known"] else "after this release"
    for one in answer["accounts"]:
        yield f"{one['account']}: {one['text']}, {when}"
    if answer["disjoint"] == "compared":
        yield "whether other partitions have any of its documents is seen in the run alone"


def _documents(found: DryRun) -> str:
    if found.documents is not None:
        return f"{found.documents:,} records"
    return "not known before they are read" if found.told else "not told, as on the card"


def _time(sample: Sample | Unsampled, documents: int | None) -> str:
    if isinstance(sample, Unsampled):
        return f"not estimated: {sample.reason}"
    seconds, size = sample.of(documents if documents is not None else _SOME)
    of = "" if documents is not None else f" for {_SOME:,} documents"
    about = "about" if sample.exact else "at most about"
    return (
        f"{about} {duration(seconds)} in one process on this machine, and about {_in_bytes(size)}"
        f"{of}, by a sample of generated documents of {_in_bytes(sample.document_bytes)}"
    )


def _in_bytes(size: float) -> str:
    unit, name = next((one for one in _SIZES if size >= one[0]), _SIZES[-1])
    return f"{size / unit:.2g} {name}" if size < 100 * unit else f"{size / unit:,.0f} {name}"
