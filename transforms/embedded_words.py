"""The baseline that users ask for: sentences privatised word by word, then encoded, then averaged.

Meehan, Mrini and Chaudhuri: Sentence-level privacy for document embeddings (ACL 2022), the baseline
`MDP` of section 5: Madlib replaces the words, and the rest is post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from indexes.sentences import split
from indexes.tokenizer import tokenize
from mechanisms.keystream import ReleaseKey
from transforms.documents import Documents
from transforms.encoder import Encoder, EncoderSource
from transforms.rows import Privatizer, Released, identified
from transforms.sentences import SentencePrivatizer, embedding_field, fixed_lists
from transforms.words import WordPrivatizer, WordsParameters


@dataclass(frozen=True)
class EmbeddedWordsParameters:
    """What the documents' mechanism is, and all that its output law depends on but the key.

    Attributes:
        words: how words are replaced.
        most_sentences: of a document's, how many count, from its beginning.
        language: of the text, for the splitter.
        encoder: of sentences.
        dimensions: the length of its embeddings.
    """

    words: WordsParameters
    most_sentences: int
    language: str
    encoder: EncoderSource
    dimensions: int

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        """The embedding."""
        return (embedding_field(self.dimensions),)

    def privatizer(self, key: ReleaseKey, side: None = None) -> EmbeddedWordsPrivatizer:
        """The path for one worker; fetches the index and loads the encoder."""
        return EmbeddedWordsPrivatizer(self, self.words.privatizer(key), self.encoder.open())


class EmbeddedWordsPrivatizer(Privatizer):
    """Releases the mean embedding of a document's sentences, whose words were replaced first."""

    row_group_rows = SentencePrivatizer.row_group_rows
    documents_at_once = SentencePrivatizer.documents_at_once

    def __init__(
        self, parameters: EmbeddedWordsParameters, words: WordPrivatizer, encoder: Encoder
    ) -> None:
        self._parameters = parameters
        self._words = words
        self._encoder = encoder

    def release(self, documents: Documents) -> Released:
        """The released rows, in input order, under fresh ids.

        A document without a sentence, which has nothing to protect, gets zeros.
        """
        most, language = self._parameters.most_sentences, self._parameters.language
        sentences = split(documents.texts.to_pylist(), most, language)
        tokens = tokenize(pa.array(sentences.texts, pa.large_string()))
        offsets, words = self._words.look_up(tokens)
        of_documents = offsets[sentences.offsets]
        addresses, replaced = self._words.replaced(documents, of_documents, words)
        embeddings = self._encoder.encode(self._words.joined(offsets, replaced).to_pylist())
        averages = fixed_lists(_means(embeddings, sentences.offsets))
        rows = identified(self._words.stream, addresses, {"embedding": averages})
        return Released(rows, len(tokens.starts), bool((words >= 0).any()))


def _means(
    embeddings: npt.NDArray[np.float32], offsets: npt.NDArray[np.int64]
) -> npt.NDArray[np.float32]:
    lengths = np.diff(offsets)
    sums = np.zeros((len(lengths), embeddings.shape[1]))
    np.add.at(sums, np.repeat(np.arange(len(lengths)), lengths), embeddings)
    return (sums / np.maximum(1, lengths)[:, None]).astype(np.float32)
