"""The counters that every stage keeps: documents, tokens, rejected records, bytes of text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from apache_beam.metrics import Metrics

from transforms.documents import Documents

NAMESPACE = "quietcorpus"

Watcher = Callable[[str, int], None]
"""Told the name of a counter and by how much it has grown."""

_watchers: list[Watcher] = []


class Progress:
    """The counters of one stage; numbers only, never content."""

    def __init__(self, stage: str) -> None:
        self._counters = {
            name: Metrics.counter(NAMESPACE, f"{stage}/{name}")
            for name in ("documents", "tokens", "rejected", "bytes")
        }

    def count(self, documents: Documents, tokens: int) -> None:
        """Add one batch."""
        self._add("tokens", tokens)
        self._add("bytes", documents.texts.nbytes)
        self._add("documents", len(documents.texts))
        self.count_rejects(documents)

    def count_rejects(self, documents: Documents) -> None:
        """Add the rejects of a batch whose documents are counted in parts, which have none."""
        self._add("rejected", len(documents.rejects))

    def _add(self, name: str, size: int) -> None:
        counter = self._counters[name]
        counter.inc(size)
        for watcher in _watchers:
            watcher(counter.metric_name.name, size)


@contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    """Have the counters of this process tell `watcher`; the in-process engine reports no others."""
    _watchers.append(watcher)
    try:
        yield
    finally:
        _watchers.remove(watcher)
