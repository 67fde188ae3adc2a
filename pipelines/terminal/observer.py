"""The progress of a pipeline: its passes over the corpus, by the counters of its bundles."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeAlias

from .progress import Display, Steps, within

STAGES = {
    "identifiers": "comparing ids",
    "vocabulary": "choosing the vocabulary",
    "histogram": "counting terms",
    "gathering": "gathering users",
    "votes": "counting votes",
    "release": "releasing documents",
}
"""The work of a pass over the corpus, by its counters."""
Numbers: TypeAlias = Mapping[str, int]
"""The state of a job, as far as it is seen: `documents` that are read and `rejected` records, in
all passes; `shards` that are written; `workers` of a cluster that are there; those that are `lost`;
parts of the corpus that are `repeated`, being read again; `requests` that workers repeat."""


class Observer:
    """A display of the passes over a corpus, a step each, by the counters that bundles report.

    Attributes:
        documents: the number of documents in the corpus, if known.
        steps: the steps of the run.
        on_progress: called with the job's state in numbers.
    """

    def __init__(
        self,
        documents: int | None,
        steps: Steps,
        *,
        on_progress: Callable[[Numbers], None] = lambda _: None,
    ) -> None:
        """Take the number of documents, if known, and a callback for the job's state in numbers."""
        self.on_progress, self.steps = on_progress, steps
        self.documents = documents
        self._totals: dict[str, int] = defaultdict(int)
        self._bundles: dict[str, dict[str, int]] = defaultdict(dict)
        self._lock = threading.Lock()
        self._stage: str | None = None
        self._display: Display | None = None

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show the job's passes until they end."""
        outer = within.get()
        self._begin("starting")
        try:
            yield
        except BaseException as error:
            self._end(type(error))
            raise
        else:
            self._end(None)
        finally:
            within.set(outer)

    def add(self, grown: Mapping[str, int]) -> None:
        """Add the increases of this process's counters."""
        with self._lock:
            for name, size in grown.items():
                self._totals[name] += size
            self._refresh()

    def report(self, bundle: str, counters: dict[str, int]) -> None:
        """Set the counters of a bundle in some worker process to these values."""
        with self._lock:
            for name, value in counters.items():
                self._totals[name] += value - self._bundles[bundle].get(name, 0)
            self._bundles[bundle].update(counters)
            self._refresh()

    def _begin(self, name: str) -> None:
        self._display = self.steps.step(name, self.documents, "documents", note=self._tokens)
        self._display.__enter__()

    def _end(self, kind: type[BaseException] | None) -> None:
        with self._lock:
            display, self._display = self._display, None
        if display is not None:
            display.__exit__(kind)

    def _refresh(self) -> None:
        self.on_progress({"documents": self._sum("documents"), "rejected": self._sum("rejected")})
        if self._display is None:
            return
        seen = [stage for stage in STAGES if self._done(stage)]
        # Passes follow each other: the last one that has begun is under way.
        if not seen:
            return
        if self._stage not in (None, seen[-1]):
            # In other processes, the last counters of a pass may never have been seen.
            self.documents = self.documents or self._done(str(self._stage))
            self._display.__exit__(None)
            self._begin(STAGES[seen[-1]])
        self._stage = seen[-1]
        title = self.steps.titled(STAGES[self._stage])
        self._display.show(self._done(self._stage), title=title)

    def _done(self, stage: str) -> int:
        """Return the number of documents of a pass that are read, or kept of an earlier try."""
        return self._totals[f"{stage}/documents"] + self._totals[f"{stage}/kept"]

    def _tokens(self, _: int) -> str:
        return f"{self._totals[f'{self._stage}/tokens']:,} tokens"

    def _sum(self, counter: str) -> int:
        return sum(v for name, v in self._totals.items() if name.endswith(f"/{counter}"))
