"""A pass over the corpus for its documents' ids alone."""

from __future__ import annotations

from collections.abc import Iterator

import apache_beam as beam

from .errors import redacted
from .metrics import Progress
from .reading.documents import Corpus, Split
from .reading.identifiers import Identifiers
from .shards import Seen, Tally
from .vocabulary import KeySource


class IdentifyDocuments(beam.DoFn):
    """A DoFn from splits to the tagged outputs `tallies` and `identifiers`.

    It has the documents, and rejects the records, that every other pass has and rejects.
    """

    def __init__(self, corpus: Corpus, key: KeySource) -> None:
        self._corpus = corpus
        self._key = key
        self._progress = Progress("identifiers")

    @redacted
    def process(self, split: Split) -> Iterator[object]:
        identifiers = Identifiers(self._corpus.id, self._key(), split.number)
        seen = Seen(identifiers, Tally.of_pass("identifiers", split))
        for documents in self._progress.read(split, self._corpus):
            self._progress.count(documents, 0)
            seen.add(documents)
        yield from seen.outputs()
