"""The counters that every stage keeps: documents, tokens, rejected records, bytes of text."""

from __future__ import annotations

from apache_beam.metrics import Metrics

from transforms.documents import Documents

NAMESPACE = "quietcorpus"


class Progress:
    """The counters of one stage; numbers only, never content."""

    def __init__(self, stage: str) -> None:
        self._documents = Metrics.counter(NAMESPACE, f"{stage}/documents")
        self._tokens = Metrics.counter(NAMESPACE, f"{stage}/tokens")
        self._rejected = Metrics.counter(NAMESPACE, f"{stage}/rejected")
        self._bytes = Metrics.counter(NAMESPACE, f"{stage}/bytes")

    def count(self, documents: Documents, tokens: int) -> None:
        """Add one batch."""
        self._documents.inc(len(documents.texts))
        self._tokens.inc(tokens)
        self._rejected.inc(len(documents.rejects))
        self._bytes.inc(documents.texts.nbytes)
