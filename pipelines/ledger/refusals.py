"""The lines by which a ledger refuses a run: each names the difference, and the run's options."""

from __future__ import annotations

from .disjoint import Partition
from .records import Reservation
from .request import Request


def told(release: str) -> str:
    """Return the refusal of another run of a release whose noisy outcome was told."""
    return (
        f"ledger: release {release} ended in a way that may depend on its noise: telling that "
        "spent its budget; give another try an id of its own"
    )


def other_bytes(release: str) -> str:
    """Return the refusal of a run that would publish something else than what is committed."""
    return (
        f"ledger: release {release} is committed, of other documents or by other software: what "
        "this run makes would be another release; give it an id of its own"
    )


def another_run(found: Reservation, request: Request, *, committed: bool) -> str:
    """Return the refusal of a request that is not the one of this id's reservation."""
    # Only what is not spent can be given back.
    before = "is committed, and was" if committed else "was"
    back = (
        ""
        if committed
        else ", or give the reservation back with `quietcorpus ledger release-reservation`"
    )
    difference, remedy = _difference(found, request)
    return (
        f"ledger: release {found.release} {before} reserved on {found.created:%Y-%m-%d} "
        f"{difference}; {remedy}give this one an id of its own{back}"
    )


def _difference(found: Reservation, request: Request) -> tuple[str, str]:
    """Return what differs, and what else than another id mends it; a spec's digest says least."""
    if found.output != request.output:
        return f"for another output, {found.output}", "name that output, or "
    if found.is_older:
        return "by an older version, which did not record how its partition is compared", ""
    if _named(found.part) != _named(request.partition):
        return "of another partition, or of one that is compared in another way", ""
    if found.cost != request.cost:
        return "at another cost", ""
    return (
        "by another spec or under another master key, or, as its noise decides whether there is a "
        "release, of other documents or by other software",
        "",
    )


def _named(partition: Partition | None) -> tuple[str | None, ...] | None:
    """Return a spec's keys of a partition: the ids' key is not among them."""
    if partition is None:
        return None
    return partition.name, partition.sort.disjoint, partition.sort.column
