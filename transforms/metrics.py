"""The counters that every stage keeps: documents, tokens, rejected records, bytes of text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

from apache_beam.metrics import Metrics

from .reading.documents import Corpus, Documents, Split
from .reading.sources import read
from .reports import reports_to

_T = TypeVar("_T")
NAMESPACE = "quietcorpus"

Watcher = Callable[[Mapping[str, int]], None]
"""A callback that takes the increases of counters, by name."""

_watchers: list[Watcher] = []


class Progress:
    """The counters of one stage; numbers only, never content."""

    def __init__(self, stage: str) -> None:
        """Take the stage's name; it reports where transforms report that are made now."""
        self._stage, self._reports, self._part = stage, reports_to.get(), 0
        self._counters = {
            name: Metrics.counter(NAMESPACE, f"{stage}/{name}")
            for name in ("documents", "tokens", "rejected", "bytes", "kept")
        }

    def read(self, split: Split, corpus: Corpus) -> Iterator[Documents]:
        """Read the documents of a split; counts made meanwhile belong to that split."""
        return self.of(split, read(split, corpus))

    def of(self, split: Split, work: Iterable[_T]) -> Iterator[_T]:
        """Yield from the work on a split; counts made meanwhile belong to that split."""
        self._part = split.number
        if self._reports:
            self._reports.begin(self._stage, self._part)
        yield from work
        self.end()

    def end(self) -> None:
        """Report that some work is done, if reports are sent before the job ends."""
        if self._reports:
            self._reports.end()

    def count(self, documents: Documents, tokens: int) -> None:
        """Add one batch."""
        self._add(
            documents=len(documents.texts),
            tokens=tokens,
            rejected=len(documents.rejects),
            bytes=documents.texts.nbytes,
        )

    def count_rejects(self, documents: Documents) -> None:
        """Add a batch's rejects; its documents are counted in parts, which have no rejects."""
        self._add(rejected=len(documents.rejects))

    def count_kept(self, split: Split, documents: int) -> None:
        """Add documents that an earlier try has read; they are reported of this split."""
        self._part = split.number
        self._add(kept=documents)

    def _add(self, **sizes: int) -> None:
        for name, size in sizes.items():
            self._counters[name].inc(size)
        grown = {self._counters[name].metric_name.name: size for name, size in sizes.items()}
        for watcher in _watchers:
            watcher(grown)
        if self._reports:
            self._reports.add(self._stage, self._part, sizes)


@contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    """Report this process's counters to `watcher`; the in-process engine reports no others."""
    _watchers.append(watcher)
    try:
        yield
    finally:
        _watchers.remove(watcher)
