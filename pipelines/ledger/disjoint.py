"""Partitions of a corpus, and the grounds on which they are known to be disjoint."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from quietcorpus.transforms.errors import InputError

from ..schema.values import Disjoint


@dataclass(frozen=True)
class Sort:
    """The grounds, if any, on which partitions are known to be disjoint.

    Partitions of two sorts cannot be compared.

    Attributes:
        disjoint: `compared` if their ids are compared, `declared` if the publisher declares it,
            else `unknown`.
        column: the ids' column, where they are compared.
        key: a check value of the key under which the ids are digested, where they are compared.
    """

    disjoint: Disjoint = "unknown"
    column: str | None = None
    key: str | None = None

    def __str__(self) -> str:
        match self.disjoint:
            case "compared":
                return f"compared by the ids of the column {self.column!r}"
            case "declared":
                return "declared to share no document, and nothing checked it"
            case "unknown":
                return "added up, for want of ids or a declaration"


@dataclass(frozen=True)
class Partition:
    """The part of the corpus that a release's documents are.

    Attributes:
        name: the part's name.
        sort: the grounds on which it is known to be disjoint from the others.
    """

    name: str
    sort: Sort


def alone(partition: Partition | None) -> str | None:
    """Return a partition's name if others cost its documents nothing; None if they may."""
    return None if partition is None or partition.sort.disjoint == "unknown" else partition.name


def refuse_mixture(partition: Partition, others: Iterable[Sort]) -> None:
    """Raise InputError if a ledger's partitions are of another sort than this one."""
    mine = partition.sort
    for theirs in others:
        if (theirs.disjoint, theirs.column) != (mine.disjoint, mine.column):
            raise InputError(
                f"ledger.partition: other partitions are {theirs}, and {partition.name} is {mine}: "
                "documents in both would not be found; do the same, or leave ledger.partition "
                "out: the costs then add up"
            )
        if theirs != mine:
            raise InputError(
                "ledger.partition: the ids of other partitions were digested under another master "
                "key, so that none can be compared with them; use that key"
            )
