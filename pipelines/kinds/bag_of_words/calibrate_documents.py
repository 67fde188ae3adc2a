"""Documents that are not private, for calibrating a release of bags of words.

They are public texts, or draws from a topic model around a private histogram.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import scipy.sparse as sp

from quietcorpus.evaluation import topic_model
from quietcorpus.evaluation.features import counted
from quietcorpus.indexes.tokens.tokenizers import Tokenizer
from quietcorpus.indexes.tokens.vocabulary import Vocabulary
from quietcorpus.transforms.artefacts.files import FileSource
from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.reading.documents import Corpus
from quietcorpus.transforms.vocabulary import load

from ...card.verify import verify
from ...prepare.public_documents import texts
from ...storage import files as storage
from ...storage import layout
from ...storage.places import absolute

TOPICS = 20
_LEAST_DOCUMENTS = 100
Counts = npt.NDArray[np.int64]


class DocumentSource(Protocol):
    """The source of a run's documents.

    Attributes:
        meant: the documents that a comparison is valid for, in words.
        terms: the number of terms, V.
    """

    @property
    def meant(self) -> str: ...

    @property
    def terms(self) -> int: ...

    def counts(self, run: int) -> sp.csr_array:
        """Return the counts of a run's documents, (n, V)."""


def _refuse_few(key: str, documents: int) -> None:
    if documents < _LEAST_DOCUMENTS:
        raise InputError(
            f"{key}: {documents} documents have no topics to speak of; give {_LEAST_DOCUMENTS} "
            "or more"
        )


@dataclass(frozen=True)
class PublicTexts:
    """The same public documents for every run."""

    documents: sp.csr_array

    meant = "for these documents; how like them yours are, it does not say"

    @classmethod
    def read(
        cls, corpus: Corpus, vocabulary: Vocabulary, wanted: int | None, seed: int
    ) -> PublicTexts:
        """Read all documents, or a sample of `wanted`; raises InputError if there are too few."""
        tokens = vocabulary.tokenizer.tokenize(pa.concat_arrays(list(texts(corpus))))
        offsets, ids = vocabulary.look_up(tokens)
        counts = counted(offsets, ids, len(vocabulary))
        if counts.nnz == 0:
            raise InputError("source: no document has a word of the vocabulary")
        size = counts.shape[0]
        _refuse_few("source", wanted or size)
        if wanted is None or wanted == size:
            return cls(counts)
        if wanted > size:
            raise InputError(
                f"source: {corpus.pattern} has {size:,} documents, and {wanted:,} are asked for; "
                "give more documents, or ask for less"
            )
        chosen = np.random.default_rng(seed).choice(size, wanted, replace=False)
        return cls(counts[np.sort(chosen)])

    @property
    def terms(self) -> int:
        """Return the number of terms, V."""
        return int(self.documents.shape[1])

    def counts(self, run: int) -> sp.csr_array:
        """Return the counts of all documents, which are the same for every run."""
        return self.documents


@dataclass(frozen=True)
class DrawnDocuments:
    """Documents from a topic model around a histogram, drawn anew for every run.

    Attributes:
        weights: the terms' weights, int64 (V,), none negative.
        length: the mean length of the histogram's documents.
        documents: the number of documents to draw.
        seed: the seed of all runs.
    """

    weights: Counts
    length: float
    documents: int
    seed: int

    meant = "for topics around this histogram; how like them yours are, it does not say"

    @classmethod
    def of(cls, path: str, documents: int | None, seed: int) -> DrawnDocuments:
        """Read the weights of a release; raises InputError for one that has none."""
        card = verify(path)
        place = f"{absolute(path)}/{layout.VOCABULARY}"
        if not any(file.path == layout.VOCABULARY for file in card.files):
            raise InputError(f"histogram: {path} has no vocabulary.parquet, and so no histogram")
        weights = storage.read_table(place)["weight"]
        if weights.null_count:
            raise InputError(
                f"histogram: {path} has a vocabulary without weights; give a release of "
                "`kind: histogram`, or one with `mechanism.histogram_epsilon`"
            )
        counts, size = weights.to_numpy(), card.documents
        if counts.sum() <= 0:  # after clipping, noise alone would pass for words
            raise InputError(f"histogram: {path} counts no words")
        _refuse_few("histogram", documents or size)
        return cls(np.maximum(counts, 0), counts.sum() / size, documents or size, seed)

    @property
    def terms(self) -> int:
        """Return the number of terms, V."""
        return len(self.weights)

    def counts(self, run: int) -> sp.csr_array:
        """Draw documents in `TOPICS` topics, with the mean length of the histogram's."""
        generator, weights = np.random.default_rng([self.seed, run]), self.weights.astype(float)
        return topic_model.draw(weights, self.documents, self.length, TOPICS, generator).counts


def documents_of(
    source: str | None,
    vocabulary: str | None,
    histogram: str | None,
    *,
    tokenizer: Tokenizer,
    text: str,
    documents: int | None,
    seed: int,
) -> DocumentSource:
    """Return public documents, or draws around a histogram; raises InputError for both or neither.

    Places are absolute.
    """
    if histogram is not None:
        if source is not None or vocabulary is not None:
            raise InputError("histogram: stands in place of `source` and `vocabulary`; leave them")
        return DrawnDocuments.of(histogram, documents, seed)
    if source is None or vocabulary is None:
        raise InputError("source: give public documents and a `vocabulary`, or a `histogram`")
    words = load(FileSource.resolve("vocabulary", vocabulary), tokenizer)
    return PublicTexts.read(Corpus(source, text), words, documents, seed)
