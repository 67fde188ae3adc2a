"""Partitions of a corpus, and how it is known that they have no document in common."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from quietcorpus.pipelines.spec.values import Disjoint
from quietcorpus.transforms.errors import InputError


@dataclass(frozen=True)
class Sort:
    """How it is known that partitions share no document; those of two sorts cannot be compared.

    Attributes:
        disjoint: their ids are `compared`, or the publisher has `declared` it; else it is
            `unknown`.
        column: of the ids, where they are compared.
        key: tells the key under which the ids are digested, where they are compared.
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
    """Documents that a release is of: a part of the corpus.

    Attributes:
        name: of the part.
        sort: how it is known that no other partition has any of them.
    """

    name: str
    sort: Sort


def alone(partition: Partition | None) -> str | None:
    """The name of a partition, if others cost its documents nothing; None where they may."""
    return None if partition is None or partition.sort.disjoint == "unknown" else partition.name


def refuse_mixture(partition: Partition, others: Iterable[Sort]) -> None:
    """Raise InputError if a ledger's partitions are of any other sort than this one."""
    mine = partition.sort
    for theirs in others:
        if (theirs.disjoint, theirs.column) != (mine.disjoint, mine.column):
            raise InputError(
                f"ledger.partition: other partitions are {theirs}, and {partition.name} is {mine}: "
                "documents in both would not be found; do as they do, or leave ledger.partition "
                "out: it adds up then"
            )
        if theirs != mine:
            raise InputError(
                "ledger.partition: the ids of other partitions were digested under another master "
                "key, so that none can be compared with them; use that key"
            )
