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
        sizes = (len(documents.texts), tokens, len(documents.rejects), documents.texts.nbytes)
        for counter, size in zip(self._counters.values(), sizes, strict=True):
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
