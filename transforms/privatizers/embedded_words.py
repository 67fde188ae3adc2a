"""A baseline of document embeddings: text privatised word by word, then encoded, then averaged.

Meehan, Mrini and Chaudhuri: Sentence-level privacy for document embeddings (ACL 2022), the baseline
`MDP` of section 5. Theirs keeps the private text's division into sentences, which depends on its
words and is not protected. Here the released words are encoded in runs of one length, so that
every step after their replacement is post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from quietcorpus.indexes.documents.recoder import means
from quietcorpus.mechanisms.keystream import ReleaseKey

from ..artefacts.encoder import EncoderSource
from ..reading.documents import Documents
from .rows import Privatizer, Released
from .sentences import (
    SentenceEncoder,
    SentencePrivatizer,
    embedding_field,
    fixed_lists,
)
from .words import WordPrivatizer, WordsParameters

RUN_WORDS = 20
"""The number of words that are encoded together: about a sentence's."""


@dataclass(frozen=True)
class EmbeddedWordsParameters:
    """The documents' mechanism, with all that its output law depends on except the key.

    Attributes:
        words: the parameters of the words' replacement.
        most_runs: the number of runs of words that count, from a document's beginning.
        encoder: the encoder of runs.
        dimensions: the length of its embeddings.
    """

    words: WordsParameters
    most_runs: int
    encoder: EncoderSource
    dimensions: int

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        """Return the column of embeddings."""
        return (embedding_field(self.dimensions),)

    def privatizer(self, key: ReleaseKey, side: None = None) -> EmbeddedWordsPrivatizer:
        """Build the privatizer of one worker; fetches the index and loads the encoder."""
        return EmbeddedWordsPrivatizer(
            self.words.privatizer(key), self.encoder.open(), self.most_runs
        )


class EmbeddedWordsPrivatizer(Privatizer):
    """A privatizer that releases the mean embedding of a document's words, all replaced first."""

    row_group_rows = SentencePrivatizer.row_group_rows
    documents_at_once = SentencePrivatizer.documents_at_once

    def __init__(self, words: WordPrivatizer, encoder: SentenceEncoder, most_runs: int) -> None:
        self._words = words
        self._encoder = encoder
        self._most_runs = most_runs

    def release(self, documents: Documents) -> Released:
        """Return the released rows, in input order, under fresh ids.

        A document without a released word gets zeros.
        """
        # The rows, ids included, of a release of words with this id and key: all that follows
        # depends on nothing else.
        released = self._words.release(documents)
        runs = [_runs(text)[: self._most_runs] for text in released.rows["text"].to_pylist()]
        offsets = np.cumsum([0, *map(len, runs)], dtype=np.int64)
        embeddings = self._encoder.encode([run for of_one in runs for run in of_one])
        column = fixed_lists(means(embeddings, offsets).astype(np.float32))
        place = released.rows.schema.get_field_index("text")
        return released._replace(rows=released.rows.set_column(place, "embedding", column))


def _runs(text: str) -> list[str]:
    words = text.split()
    return [" ".join(words[i : i + RUN_WORDS]) for i in range(0, len(words), RUN_WORDS)]
