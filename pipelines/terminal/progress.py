"""Progress of a run: a bar, or plain log lines where the caller asks for none."""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias, TypeVar

from tqdm.auto import tqdm  # a widget in a notebook

_TELL_EVERY_SECONDS = 10.0
_LARGE = 10_000
_LOGGER = logging.getLogger("quietcorpus.progress")
# Latest stage first: the first here that has begun is shown.
_STAGES = {
    "release": "releasing",
    "gathering": "gathering users",
    "histogram": "counting terms",
    "vocabulary": "counting words",
    "identifiers": "comparing ids",
}
_T = TypeVar("_T")

Numbers: TypeAlias = Mapping[str, int]
"""The state of a job, as far as it is seen: `documents` that are read, in all passes; `shards` that
are written; `workers` of a cluster that are there; those that are `lost`."""


class Display:
    """A display of the finished part of some work: a bar, or a log line every ten seconds."""

    def __init__(
        self,
        work: str,
        total: int | None,
        unit: str,
        *,
        bar: bool,
        done: int = 0,
        note: Callable[[int], str] | None = None,
    ) -> None:
        """Begin a display.

        Args:
            work: the name of the work.
            total: the number of steps, if known.
            unit: the name of a step, in the plural.
            bar: whether to show a bar, on standard error or in a notebook.
            done: the number of steps that are done already.
            note: says more about the state after so many steps; called every ten seconds.
        """
        self._work, self._total, self._unit, self._note = work, total, unit, note
        self._begun = self._told = time.monotonic()
        self._first = self._done = done
        self._bar = tqdm(
            desc=work,
            total=total,
            initial=done,
            unit=f" {unit}",
            unit_scale=total is None or total >= _LARGE,
            leave=False,
            disable=not bar,
        )

    def __enter__(self) -> Display:
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.close()

    def advance(self, steps: int) -> None:
        """Show that so many more steps are done."""
        self.show(self._done + steps)

    def show(self, done: int, work: str | None = None) -> None:
        """Show that so many steps are done in all, and that the work now has another name."""
        self._work = work or self._work
        self._bar.set_description(self._work, refresh=False)
        self._bar.update(done - self._done)
        self._done = done
        now = time.monotonic()
        if now - self._told < _TELL_EVERY_SECONDS:
            return
        self._told = now
        said = self._note(done) if self._note else ""
        if not self._bar.disable:
            self._bar.set_postfix_str(said)
            return
        steps = (
            f"{done} {self._unit}"
            if self._total is None
            else f"{done} of {self._total} {self._unit}"
        )
        rate = (done - self._first) / (now - self._begun)
        _LOGGER.info(", ".join(filter(None, (f"{self._work}: {steps}", f"{rate:.3g}/s", said))))


def shown(steps: Iterable[_T], total: int, work: str, unit: str, *, bar: bool) -> Iterator[_T]:
    """Yield the results of steps, one each, and show how many are done; see `Display`."""
    with Display(work, total, unit, bar=bar) as display:
        for step in steps:
            yield step
            display.advance(1)


class Observer(Display):
    """A display of the sums of the counters that bundles report.

    `passes` is the number of times that every document is read; `documents` is the number of
    documents, if known. `on_progress` is told of the job's state, in numbers.
    """

    def __init__(
        self,
        documents: int | None,
        passes: int,
        *,
        bar: bool,
        on_progress: Callable[[Numbers], None] = lambda _: None,
    ) -> None:
        self.on_progress = on_progress
        self._totals: dict[str, int] = defaultdict(int)
        self._bundles: dict[str, dict[str, int]] = defaultdict(dict)
        self._lock = threading.Lock()
        total = documents * passes if documents is not None else None
        super().__init__("starting", total, "documents", bar=bar, note=self._tokens)

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

    def _refresh(self) -> None:
        stage = next((name for s, name in _STAGES.items() if self._totals[f"{s}/documents"]), None)
        documents = self._sum("documents")
        self.show(documents, stage)
        self.on_progress({"documents": documents})

    def _tokens(self, _: int) -> str:
        return f"{self._sum('tokens'):,} tokens"

    def _sum(self, counter: str) -> int:
        return sum(v for name, v in self._totals.items() if name.endswith(f"/{counter}"))
