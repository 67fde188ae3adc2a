"""The per-document path of a word-level release: batches in, rows of privatised text out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from threading import Lock
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from quietcorpus.indexes.arrow_arrays import as_numbers, as_strings
from quietcorpus.indexes.engines import code_search, vector_search
from quietcorpus.indexes.search import (
    CODE_ENGINES,
    EXACT,
    VECTOR_ENGINES,
    Search,
    SearchEngine,
    SearchError,
    Searching,
    VectorSearch,
)
from quietcorpus.indexes.tokenizers import UNICODE_WORDS, Tokenizer
from quietcorpus.indexes.within import Within
from quietcorpus.indexes.word_index import WordIndex
from quietcorpus.indexes.word_index_manifest import Part
from quietcorpus.mechanisms.accounting.guarantees import MetricPrivacy
from quietcorpus.mechanisms.encoding import Value
from quietcorpus.mechanisms.keystream import Addresses, ReleaseKey
from quietcorpus.mechanisms.noise.uniform import uniform
from quietcorpus.mechanisms.words import brr, madlib, vickrey
from quietcorpus.mechanisms.words.brr import BinaryRandomizedResponse
from quietcorpus.mechanisms.words.distance_draws import MOST_ENTRIES, Decline, DistanceDraws
from quietcorpus.mechanisms.words.madlib import Madlib
from quietcorpus.mechanisms.words.tem import TruncatedExponential, radius_of
from quietcorpus.mechanisms.words.vickrey import Vickrey
from quietcorpus.mechanisms.words.word_exponential import WordExponential

from ..errors import InputError
from ..reading.documents import BATCH_DOCUMENTS, Documents
from ..tokens import tokens_of
from .longest import Longest
from .rows import (
    Privatizer,
    Released,
    document_addresses,
    identified,
)

WORDS_ROW_GROUP_ROWS = BATCH_DOCUMENTS  # texts may be long, and a row group lies in memory
_WORDS_AT_ONCE, _WORDS_IN_LISTS, _WORDS_OF_TABLES = 1 << 9, 1 << 11, 1 << 16
_MOST_TABLES, _ENTRIES = 8, 1 << 22  # where the words of a document share epsilon
_DRAW_LANE = 254  # a lane of the stage's keystream, for out-of-vocabulary words


class WordMechanism(StrEnum):
    """The mechanisms that release text word by word."""

    MADLIB = "madlib"
    VICKREY = "vickrey"
    BRR = "brr"
    TEM = "tem"
    EXPONENTIAL = "exponential"


def parts_read(mechanism: WordMechanism, search: Searching = EXACT) -> tuple[Part, ...]:
    """Return the parts of an index that a release reads beside the words."""
    match mechanism:
        case WordMechanism.MADLIB | WordMechanism.VICKREY:
            return ("vectors", "search") if search.approximate else ("vectors",)
        case WordMechanism.BRR:
            return ("codes",)
        case WordMechanism.TEM | WordMechanism.EXPONENTIAL:
            return ("vectors",)


def engines_of(mechanism: WordMechanism) -> tuple[SearchEngine, ...]:
    """Return the engines that find a word for what the mechanism makes of one."""
    match mechanism:
        case WordMechanism.MADLIB | WordMechanism.VICKREY:
            return VECTOR_ENGINES
        case WordMechanism.BRR:
            return CODE_ENGINES
        case WordMechanism.TEM | WordMechanism.EXPONENTIAL:
            return (SearchEngine.EXACT,)  # by which tables are made; nothing is noisy there


def metric_of(mechanism: WordMechanism) -> str:
    """Return the name of the metric that epsilon is per unit of."""
    match mechanism:
        case WordMechanism.MADLIB:
            return Madlib.metric
        case WordMechanism.VICKREY:
            return Vickrey.metric
        case WordMechanism.BRR:
            return BinaryRandomizedResponse.metric
        case WordMechanism.TEM:
            return TruncatedExponential.metric
        case WordMechanism.EXPONENTIAL:
            return WordExponential.metric


def decline_of(
    mechanism: WordMechanism, epsilon: Fraction, truncation: Fraction | None, words: int
) -> Decline:
    """Return the law of the weights of a mechanism that draws words by their distances.

    `words` is the number of the index's.
    """
    match mechanism:
        case WordMechanism.TEM:
            return TruncatedExponential(epsilon, truncation or radius_of(epsilon, words)).decline
        case WordMechanism.EXPONENTIAL:
            return WordExponential(epsilon).decline
        case WordMechanism.MADLIB | WordMechanism.VICKREY | WordMechanism.BRR:
            raise ValueError(f"{mechanism.value} draws no words by their distances")


def given_truncation(mechanism: WordMechanism, truncation: Fraction | None) -> Fraction | None:
    """Return a gamma that is given; raises InputError unless the mechanism has one."""
    if truncation is not None and (mechanism is not WordMechanism.TEM or truncation <= 0):
        raise InputError(f"truncation: {float(truncation):g}: only tem takes it, and above 0")
    return truncation


def given_tuning(mechanism: WordMechanism, tuning: Fraction | None) -> Fraction | None:
    """Return a t that is given; raises InputError unless the mechanism has one, and then needs it.

    It is above 0 and at most 1.
    """
    if tuning is None:
        if mechanism is WordMechanism.VICKREY:
            raise InputError("tuning: vickrey needs it: above 0, and at most 1")
    elif mechanism is not WordMechanism.VICKREY or not 0 < tuning <= 1:
        raise InputError(
            f"tuning: {float(tuning):g}: only vickrey takes it, above 0, and at most 1"
        )
    return tuning


class Index(Protocol):
    """The source of a word index: an artefact anywhere, or a folder of this machine."""

    @property
    def uri(self) -> str:
        """Return its folder."""

    @property
    def digest(self) -> str:
        """Return the SHA-256 of its manifest."""

    def open(self, *parts: Part) -> WordIndex:
        """Verify and map the words and these parts; raises InputError if one is unusable."""


@dataclass(frozen=True)
class WordsParameters:
    """The documents' mechanism, with all that its output law depends on except the key.

    Attributes:
        mechanism: the mechanism that replaces words.
        epsilon: per unit of distance.
        per: `word`, or `document` where its words share epsilon equally.
        out_of_vocabulary: whether a word that the index lacks is left out or drawn uniformly.
        index: the artefact of the words, their vectors and their codes.
        search: the engine that finds words. Only an approximate one is part of the law: the others
            find the same words, so that a release by any of them is the same release.
        tokenizer: the tokeniser, of which every word of the index is one token.
        truncation: for `tem`, gamma; None for the one that follows from epsilon and the index.
        tuning: for `vickrey`, t; None for the others.
        longest: the most words of a document, where epsilon was found for documents of a length.
    """

    mechanism: WordMechanism
    epsilon: Fraction
    per: Literal["word", "document"]
    out_of_vocabulary: Literal["drop", "draw"]
    index: Index
    search: Searching = EXACT
    tokenizer: Tokenizer = UNICODE_WORDS
    longest: Longest | None = None
    truncation: Fraction | None = None
    tuning: Fraction | None = None

    fields = (pa.field("text", pa.large_string()),)  # texts of a row group may exceed 2 GB

    @property
    def guarantee(self) -> MetricPrivacy:
        """Return the guarantee for the words of one document."""
        return MetricPrivacy(metric_of(self.mechanism), self.epsilon, self.per)

    def search_of(self, index: WordIndex) -> Search:
        """Return the search of the index's vectors or codes.

        Raises InputError if the engine cannot search them here.
        """
        match self.mechanism:
            case WordMechanism.MADLIB | WordMechanism.VICKREY:
                return self.vector_search_of(index)
            case WordMechanism.BRR:
                with _search_errors():
                    return code_search(self.search, index.codes)
            case WordMechanism.TEM | WordMechanism.EXPONENTIAL:
                raise ValueError(f"{self.mechanism.value} searches for no noisy query")

    def vector_search_of(self, index: WordIndex) -> VectorSearch:
        """Return the search of the index's vectors; raises InputError as `search_of` does."""
        with _search_errors():
            lists = index.lists if self.search.approximate else None
            return vector_search(self.search, index.vectors, lists)

    def privatizer(self, key: ReleaseKey, side: None = None) -> WordPrivatizer:
        """Build the privatizer of one worker; fetches and maps what it reads of the index."""
        return WordPrivatizer(self, self.index.open(*parts_read(self.mechanism, self.search)), key)


@contextmanager
def _search_errors() -> Iterator[None]:
    try:
        yield
    except SearchError as error:
        raise InputError(f"mechanism.search: {error}") from None


def _law(parameters: WordsParameters) -> dict[str, Value]:
    """Return parameters of the law that only some releases have.

    The most words of a document change nothing unless it is cut.
    """
    longest, law = parameters.longest, dict[str, Value]()
    if longest is not None and longest.longer == "cut":
        law["most_words"] = longest.words
    if parameters.mechanism is WordMechanism.TEM:
        law["truncation"] = parameters.truncation
    if parameters.mechanism is WordMechanism.VICKREY:
        law["tuning"] = parameters.tuning
    return law


class WordPrivatizer(Privatizer):
    """A privatizer that replaces every word, by noise and a search or by a draw."""

    row_group_rows = WORDS_ROW_GROUP_ROWS
    documents_at_once = 64  # more would not be faster, and would show progress more rarely

    def __init__(self, parameters: WordsParameters, index: WordIndex, key: ReleaseKey) -> None:
        if parameters.tokenizer.title != index.tokenizer.title:
            raise InputError(
                f"index: its tokenizer is {index.tokenizer.title}, and that of the texts is "
                f"{parameters.tokenizer.title}; use one for both"
            )
        self._parameters = parameters
        self._index = index
        self._stream = key.stage(
            "words",
            1,
            mechanism=parameters.mechanism,
            epsilon=parameters.epsilon,
            per=parameters.per,
            out_of_vocabulary=parameters.out_of_vocabulary,
            index=parameters.index.digest,
            tokenizer=parameters.tokenizer.law,
            **parameters.search.law,
            **_law(parameters),
        )
        self._draws = parameters.out_of_vocabulary == "draw"
        self._tables: dict[Fraction, DistanceDraws] = {}
        self._lock = Lock()
        # Searches in lists are faster, the more queries ask for the same list.
        approximate = parameters.search.approximate
        self._words_at_once = _WORDS_IN_LISTS if approximate else _WORDS_AT_ONCE
        match parameters.mechanism:
            case WordMechanism.MADLIB | WordMechanism.BRR:
                self._search = parameters.search_of(index)
            case WordMechanism.VICKREY:
                self._vectors = parameters.vector_search_of(index)
            case WordMechanism.TEM | WordMechanism.EXPONENTIAL:
                self._distances = Within(index.vectors)
                self._words_at_once = _WORDS_OF_TABLES

    def release(self, documents: Documents) -> Released:
        """Return the released rows, in input order, under fresh ids."""
        tokens = tokens_of(documents.texts, self._parameters.tokenizer)
        offsets, words = self._index.vocabulary.look_up(tokens, unknown=self._draws)
        # The address is bound to the words, those that are cut included: any change to them changes
        # all of the noise.
        addresses = document_addresses(self._stream, documents, offsets, words)
        known = int((words >= 0).sum())
        if self._parameters.longest is not None:
            offsets, words = self._parameters.longest.shortened(offsets, words)
        epsilons, which = self._epsilons(offsets)
        parts = self._stream.parts(addresses, offsets)
        released = np.empty(len(words), dtype=np.int32)
        for start in range(0, len(words), self._words_at_once):
            some = slice(start, start + self._words_at_once)
            released[some] = self._replace(words[some], epsilons, which[some], parts[some])
        rows = identified(self._stream, addresses, {"text": self._joined(offsets, released)})
        return Released(rows, len(tokens.starts), known)

    def _epsilons(
        self, offsets: npt.NDArray[np.int64]
    ) -> tuple[list[Fraction], npt.NDArray[np.int64]]:
        """Return the epsilons in use, and for each word the position of its own among them."""
        lengths = np.diff(offsets)
        epsilon = self._parameters.epsilon
        if self._parameters.per == "word":
            return [epsilon], np.zeros(lengths.sum(), dtype=np.int64)
        distinct, which = np.unique(lengths, return_inverse=True)
        shares = [epsilon / max(1, length) for length in distinct.tolist()]
        return shares, np.repeat(which, lengths)

    def _replace(
        self,
        words: npt.NDArray[np.int32],
        epsilons: list[Fraction],
        which: npt.NDArray[np.int64],
        addresses: Addresses,
    ) -> npt.NDArray[np.int32]:
        """Draw the released word's id for each word's id; -1 marks a word that the index lacks."""
        known = words >= 0
        released = np.empty_like(words)
        size = len(self._index.vocabulary)
        released[~known] = uniform(size, self._stream, addresses[~known], lane=_DRAW_LANE)
        released[known] = self._drawn(words[known], epsilons, which[known], addresses[known])
        return released

    def _drawn(
        self,
        words: npt.NDArray[np.int32],
        epsilons: list[Fraction],
        which: npt.NDArray[np.int64],
        addresses: Addresses,
    ) -> npt.NDArray[np.int32]:
        """Draw the released word's id for each word that the index has."""
        # A search gets nothing of the words but noisy queries: its answer is post-processing.
        match self._parameters.mechanism:
            case WordMechanism.MADLIB | WordMechanism.BRR:
                return self._search.nearest(self.noisy(words, epsilons, which, addresses))
            case WordMechanism.VICKREY:
                noisy = self.noisy(words, epsilons, which, addresses)
                assert self._parameters.tuning is not None
                return vickrey.chosen(
                    *self._vectors.several(noisy, 2),
                    self._parameters.tuning,
                    self._stream,
                    addresses,
                )
            case WordMechanism.TEM | WordMechanism.EXPONENTIAL:
                drawn = np.empty_like(words)
                with self._lock:  # threads may share a privatizer, and would share its tables
                    for each in np.unique(which):
                        own = which == each
                        draws = self.draws_of(epsilons[each])
                        drawn[own] = draws.draw(words[own], self._stream, addresses[own])
                return drawn

    def noisy(
        self,
        words: npt.NDArray[np.int32],
        epsilons: list[Fraction],
        which: npt.NDArray[np.int64],
        addresses: Addresses,
    ) -> npt.NDArray[Any]:
        """Return the words' vectors with Madlib's noise, or their codes with BRR's flips.

        A release shows no such row: the nearest words alone leave this object.
        """
        law = epsilons, which, self._stream, addresses
        if self._parameters.mechanism is WordMechanism.BRR:
            return brr.flip(self._index.codes[words], *law)
        return madlib.perturb(self._index.vectors[words], *law)

    def draws_of(self, epsilon: Fraction) -> DistanceDraws:
        """Return the draws of an epsilon, with their table; the last few are kept."""
        if epsilon not in self._tables:
            given, size = self._parameters, len(self._index.vocabulary)
            decline = decline_of(given.mechanism, epsilon, given.truncation, size)
            while len(self._tables) >= _MOST_TABLES:
                del self._tables[next(iter(self._tables))]
            self._tables[epsilon] = DistanceDraws(
                self._distances, decline, MOST_ENTRIES if given.per == "word" else _ENTRIES
            )
        return self._tables[epsilon]

    def _joined(
        self, offsets: npt.NDArray[np.int64], words: npt.NDArray[np.int32]
    ) -> pa.LargeStringArray:
        """Join each document's words with single spaces."""
        spelled = self._index.vocabulary.spelled(words).cast(pa.string())
        lists = pa.ListArray.from_arrays(as_numbers(offsets.astype(np.int32)), spelled)
        space = as_strings([" "]).cast(pa.string())[0]
        return pc.binary_join(lists, space).cast(pa.large_string())
