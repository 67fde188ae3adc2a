"""The per-document path of a sentence-private release, and of its baseline by words.

A baseline of document embeddings: text privatised word by word, then encoded, then averaged.

Meehan, Mrini and Chaudhuri: Sentence-level privacy for document embeddings (ACL 2022), the baseline
`MDP` of section 5. Theirs keeps the private text's division into sentences, which depends on its
words and is not protected. Here the released words are encoded in runs of one length, so that
every step after their replacement is post-processing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from quietcorpus.indexes.documents.candidates import RECODED, TEXT, Candidates
from quietcorpus.indexes.documents.recoder import WIDTHS, means
from quietcorpus.indexes.tokens.segmentation import NAME, split
from quietcorpus.indexes.tokens.written_language import FrequentWordCounter
from quietcorpus.mechanisms.accounting.guarantees import SentencePrivacy
from quietcorpus.mechanisms.keystream import Addresses, Keystream, ReleaseKey
from quietcorpus.mechanisms.sentences.deep_candidate import (
    DeepCandidate,
    Depths,
    Similarities,
    Utility,
    on_grid,
    project,
)
from quietcorpus.mechanisms.sentences.projected_mean import Ball, NoisyProjections, ProjectedMean
from quietcorpus.mechanisms.sentences.truncation import Box, NoisyMeans, Truncation

from ..artefacts.encoder import EncoderSource
from ..artefacts.folders import CandidatesSource
from ..reading.documents import BATCH_DOCUMENTS, Documents
from .rows import (
    Privatizer,
    Released,
    document_addresses,
    identified,
)
from .words import WordPrivatizer, WordsParameters

SENTENCES_ROW_GROUP_ROWS = BATCH_DOCUMENTS

Embeddings = npt.NDArray[np.float32]
"""One row for each sentence, float32 (total, d)."""


class SentenceMechanism(StrEnum):
    """The mechanisms that release an embedding of each document."""

    DEEP_CANDIDATE = "deep-candidate"
    PROJECTED_MEAN = "projected-mean"
    TRUNCATION = "truncation"
    MADLIB = "madlib"


def embedding_field(dimensions: int) -> pa.Field:
    """Return the column of released embeddings."""
    return _vector_field("embedding", dimensions)


def _vector_field(name: str, dimensions: int) -> pa.Field:
    return pa.field(name, pa.list_(pa.float32(), dimensions))


@dataclass(frozen=True)
class SentencesParameters:
    """The documents' mechanism, with all that its output law depends on except the key.

    Attributes:
        mechanism: any but Madlib, which has its own parameters (`privatizers.embedded_words`).
        epsilon: the epsilon of one sentence.
        utility: for deep-candidate: the utility of a candidate.
        projections: for deep-candidate by depth: the number of the candidates' projections used.
        most_sentences: the number of sentences that count, from a document's beginning.
        candidates: the artefact of the candidates and all that was learnt from public documents.
        encoder: the encoder of sentences.
        dimensions: the length of its embeddings.
        include: for deep-candidate: the columns of the drawn candidate besides its number and
            embedding: `TEXT`, `RECODED`.
        directions: for projected-mean: the number of the candidates' directions used.
    """

    mechanism: SentenceMechanism
    epsilon: Fraction
    utility: Utility
    projections: int
    most_sentences: int
    candidates: CandidatesSource
    encoder: EncoderSource
    dimensions: int
    include: frozenset[str] = frozenset()
    directions: int = 0

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        """Return the columns: a drawn candidate's number and text, and the embedding."""
        embedding = embedding_field(self.dimensions)
        if self.mechanism is not SentenceMechanism.DEEP_CANDIDATE:
            return (embedding,)
        number = pa.field("candidate", pa.int32())
        further = pa.field(TEXT, pa.large_string()), _vector_field(RECODED, WIDTHS[-1])
        return (number, *(field for field in further if field.name in self.include), embedding)

    @property
    def law(self) -> DeepCandidate | ProjectedMean | Truncation:
        """Return the mechanism."""
        if self.mechanism is SentenceMechanism.PROJECTED_MEAN:
            return ProjectedMean(self.epsilon, self.directions)
        if self.mechanism is SentenceMechanism.TRUNCATION:
            return Truncation(self.epsilon, self.dimensions)
        return DeepCandidate(self.epsilon, self.utility, self.projections)

    @property
    def guarantee(self) -> SentencePrivacy:
        """Return the guarantee for one document."""
        return self.law.guarantee

    def privatizer(self, key: ReleaseKey, side: None = None) -> SentencePrivatizer:
        """Build the privatizer of one worker; fetches the candidates and loads the encoder."""
        return SentencePrivatizer(self, self.candidates.open(), self.encoder.open(), key)


class SentenceEncoder(Protocol):
    """The encoder of a release, or the table of made-up sentences of an audit."""

    def encode(self, sentences: Sequence[str]) -> Embeddings:
        """Compute the embedding of every sentence, each from that sentence alone."""


class SentencePrivatizer(Privatizer):
    """A privatizer that releases a public or a noisy embedding in place of each document's.

    Attributes:
        mechanism: the mechanism that is drawn from, with its sampler.
    """

    row_group_rows = SENTENCES_ROW_GROUP_ROWS
    documents_at_once = 128  # fewer would leave more of the encoder's batches half empty

    def __init__(
        self,
        parameters: SentencesParameters,
        candidates: Candidates,
        encoder: SentenceEncoder,
        key: ReleaseKey,
    ) -> None:
        self._most = parameters.most_sentences
        self._language = candidates.manifest.language
        self._frequent = FrequentWordCounter(candidates.manifest.frequent)
        self._encoder = encoder
        self._stream = key.stage(
            "sentences",
            1,
            **parameters.law.stage_parameters,
            most_sentences=parameters.most_sentences,
            candidates=parameters.candidates.digest,
            encoder=parameters.encoder.digest,
            splitter=NAME,
        )
        self.mechanism = _mechanism(parameters, candidates)

    def release(self, documents: Documents) -> Released:
        """Return the released rows, in input order, under fresh ids."""
        sentences = split(documents.texts.to_pylist(), self._most, self._language)
        embeddings = self._encoder.encode(sentences.texts)
        inputs = self.mechanism.inputs(embeddings, sentences.offsets)
        rows = self.drawn(documents, inputs)
        frequent = self._frequent.count(documents.texts)
        return Released(rows, len(sentences.texts), len(sentences.texts), frequent)

    def drawn(self, documents: Documents, inputs: npt.NDArray[np.int32]) -> pa.Table:
        """Draw the released rows of documents from their mechanism's inputs."""
        # The address is bound to all that the draw depends on: any change there changes all of it.
        bounds = np.arange(len(inputs) + 1, dtype=np.int64) * inputs.shape[1]
        addresses = document_addresses(self._stream, documents, bounds, inputs.ravel())
        columns = self.mechanism.columns(inputs, self._stream, addresses)
        return identified(self._stream, addresses, columns)


def _mechanism(parameters: SentencesParameters, candidates: Candidates) -> CandidateDraw | NoisySum:
    law = parameters.law
    if isinstance(law, Truncation):
        box = Box(*candidates.box)
        return NoisySum(box, NoisyMeans(law, box))
    if isinstance(law, ProjectedMean):
        found = ball(candidates, law.directions)
        return NoisySum(found, NoisyProjections(law, found))
    return CandidateDraw(law, candidates, parameters.include)


class CandidateDraw:
    """The draw of a candidate by its utility; all released fields follow from its number.

    Attributes:
        sampler: the exponential mechanism that draws.
    """

    def __init__(
        self, mechanism: DeepCandidate, candidates: Candidates, include: frozenset[str]
    ) -> None:
        self.sampler = mechanism.sampler
        self._embeddings = candidates.embeddings
        self._texts: pa.Array | None = None
        if TEXT in include:
            assert candidates.documents is not None
            self._texts = candidates.documents[TEXT].combine_chunks()
        # Whole numbers of at most 2^20: float32 holds them.
        self._recoded = candidates.recoded.astype(np.float32) if RECODED in include else None
        self._utilities = utilities(mechanism.utility, mechanism.projections, candidates)

    def inputs(
        self, embeddings: Embeddings, offsets: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int32]:
        """Compute all that a document's output depends on except the key: utilities, a row each."""
        return self._utilities(embeddings, offsets)

    def columns(
        self, inputs: npt.NDArray[np.int32], stream: Keystream, addresses: Addresses
    ) -> dict[str, pa.Array]:
        """Draw the released columns."""
        drawn = self.sampler.draw(inputs, stream, addresses)
        numbers = pa.array(drawn, pa.int32())
        further: dict[str, pa.Array] = {}
        if self._texts is not None:
            further[TEXT] = self._texts.take(numbers)
        if self._recoded is not None:
            further[RECODED] = fixed_lists(self._recoded[drawn])
        return {"candidate": numbers, **further, "embedding": fixed_lists(self._embeddings[drawn])}


class NoisySum:
    """The noisy mean of clipped embeddings; inputs are the number of sentences, then the sums.

    Attributes:
        clipping: the public body that sentences are clipped to.
        noisy: the noise on their sums.
    """

    def __init__(self, clipping: Box | Ball, noisy: NoisyMeans | NoisyProjections) -> None:
        self.clipping, self.noisy = clipping, noisy

    def inputs(
        self, embeddings: Embeddings, offsets: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int32]:
        """Compute all that a document's output depends on except the key, a row each."""
        sums = self.clipping.sums(embeddings, offsets)
        return np.column_stack([np.diff(offsets), sums]).astype(np.int32)

    def columns(
        self, inputs: npt.NDArray[np.int32], stream: Keystream, addresses: Addresses
    ) -> dict[str, pa.Array]:
        """Draw the released columns."""
        lengths, sums = inputs[:, 0].astype(np.int64), inputs[:, 1:].astype(np.int64)
        released = self.noisy.release(sums, lengths, stream, addresses)
        return {"embedding": fixed_lists(released)}


def ball(candidates: Candidates, directions: int) -> Ball:
    """Return the public ball along the first of the candidates' directions."""
    assert candidates.directions is not None
    assert candidates.radii is not None
    radius = float(candidates.radii[directions - 1])
    lifts = None if candidates.lifts is None else candidates.lifts[:directions]
    return Ball(candidates.centre, candidates.directions[:directions], radius, lifts)


def utilities(
    utility: Utility, projections: int, candidates: Candidates
) -> Callable[[Embeddings, npt.NDArray[np.int64]], npt.NDArray[np.int32]]:
    """Return a function of sentence embeddings (total, d) and documents' offsets.

    It computes the utilities, int32 (n, m).
    """
    if utility is Utility.SIMILARITY:
        centre = candidates.centre
        own = on_grid(candidates.embeddings - centre)
        similarities = Similarities(own, *candidates.manifest.cosines)
        return lambda embeddings, offsets: similarities.utilities(
            on_grid(embeddings - centre), offsets
        )
    recoder, directions = candidates.recoder, candidates.projections[:projections]
    depths = Depths(project(candidates.recoded, directions), utility)
    return lambda embeddings, offsets: depths.utilities(
        project(recoder.recode(embeddings), directions), offsets
    )


def fixed_lists(rows: npt.NDArray[np.float32]) -> pa.FixedSizeListArray:
    """Return rows of vectors, (n, d), as a column of lists of d numbers."""
    values = pa.array(np.ascontiguousarray(rows).ravel(), pa.float32())
    return pa.FixedSizeListArray.from_arrays(values, rows.shape[1])


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
