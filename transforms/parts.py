"""The parts of a corpus that a sum holds: each must be in it exactly once.

A part that an engine delivers twice doubles what each of its documents adds to a sum, and with it
the sensitivity for which noise was calibrated. So every partial sum carries the numbers of the
parts that it holds, up to the point where noise is added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from .errors import StageError

Parts = tuple[int, ...]
"""The numbers of the parts (splits of the corpus, or shards of users) that a sum holds."""


def joined(held: Iterable[Parts]) -> Parts:
    """Join the parts of several sums; raises StageError if a part occurs twice."""
    parts = tuple(part for own in held for part in own)
    if len(set(parts)) < len(parts):
        raise doubled("a part")
    return parts


def require_all(parts: Parts, count: int, name: Callable[[int], str] = "number {}".format) -> None:
    """Raise StageError unless these are the parts 0 .. count - 1, each once; `name` names one."""
    joined([parts])
    if sorted(parts) != list(range(count)):
        lost = sorted(set(range(count)) - set(parts))
        first = "" if not lost else f" (the first lost is {name(lost[0])})"
        raise StageError(
            f"the engine lost a part: {count - len(lost)} of {count} are there{first}; run again, "
            "on another engine if that repeats"
        )


def doubled(what: str) -> StageError:
    """Return the error for a run in which the engine delivered something twice."""
    return StageError(f"the engine doubled {what}; run again, on another engine if that repeats")
