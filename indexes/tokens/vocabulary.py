"""A vocabulary: the terms that a release may contain, and the look-up of tokens in it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from quietcorpus.compiled import compiled

from .tokenizer import Tokens, string_buffers
from .tokenizers import UNICODE_WORDS, Tokenizer


class VocabularyError(ValueError):
    """A list of terms that cannot be a vocabulary; the message says why and what to do."""


class Words(Protocol):
    """Distinct words, numbered: a `Vocabulary`, or a `WordTable` (`words/word_table.py`)."""

    @property
    def terms(self) -> pa.Array:
        """Return all words, large_string (V,), in the order of their numbers."""

    def spelled(self, numbers: npt.NDArray[np.int32]) -> pa.Array:
        """Return the words of these numbers, large_string."""

    def look_up(
        self, tokens: Tokens, *, unknown: bool = False
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
        """Look up the known tokens of each text, as `Vocabulary.look_up` does."""

    def __len__(self) -> int: ...


_SOME = 1_000


def some_of(words: Words) -> list[str]:
    """Return up to 1,000 words, evenly spread over the numbers."""
    numbers = np.linspace(0, len(words) - 1, min(len(words), _SOME)).astype(np.int32)
    found: list[str] = words.spelled(numbers).to_pylist()
    return found


class Vocabulary:
    """Distinct terms, numbered in their given order.

    Attributes:
        terms: large_string (V,).
        tokenizer: the tokeniser of the texts in which they are looked up.
        hashes: uint64 (V,); the tokeniser's hash of each.
        slots: int32; an open-addressing hash table of term ids, at most half full; -1 is empty.
    """

    def __init__(self, terms: Sequence[str], tokenizer: Tokenizer = UNICODE_WORDS) -> None:
        """Build the hash table of the terms.

        Raises VocabularyError for no terms, duplicates, or terms that no text can yield.
        """
        self.tokenizer = tokenizer
        self.terms = pa.array(terms, type=pa.large_string())
        if len(self.terms) == 0:
            raise VocabularyError("holds no terms")
        counts = pc.value_counts(self.terms)
        repeated = counts.field("counts").to_numpy() > 1
        if repeated.any():
            example = counts.field("values")[int(np.argmax(repeated))].as_py()
            raise VocabularyError(
                f"holds {example!r} more than once ({repeated.sum()} terms are repeated); "
                "list every term once"
            )
        self._data, self._offsets = string_buffers(self.terms)
        tokens = tokenizer.spelled(self.terms)
        self._refuse_unreachable_terms(tokens)
        # Every term is one token now, so the tokens' hashes are the terms'.
        self.hashes = tokens.hashes
        self.slots = _build(tokens.hashes)

    @classmethod
    def mapped(
        cls,
        terms: pa.Array,
        hashes: npt.NDArray[np.uint64],
        slots: npt.NDArray[np.int32],
        tokenizer: Tokenizer,
    ) -> Vocabulary:
        """Build a vocabulary from stored arrays, which are neither copied nor made again."""
        vocabulary = cls.__new__(cls)
        vocabulary.terms, vocabulary.hashes, vocabulary.slots = terms, hashes, slots
        vocabulary.tokenizer = tokenizer
        vocabulary._data, vocabulary._offsets = string_buffers(terms)
        return vocabulary

    def _refuse_unreachable_terms(self, tokens: Tokens) -> None:
        """Raise VocabularyError unless every term is its own one and only token."""
        reachable = is_reachable(self.terms, tokens, self.tokenizer)
        if not reachable.all():
            example = self.terms[int(np.argmin(reachable))].as_py()
            name = self.tokenizer.name
            other = "" if self.tokenizer == UNICODE_WORDS else f", or a list made for {name}"
            raise VocabularyError(
                f"holds {example!r}, which the tokeniser {name} never yields "
                f"({(~reachable).sum()} such terms); give lower-case words of letters alone{other}"
            )

    def __len__(self) -> int:
        return len(self.terms)

    def __reduce__(self) -> tuple[Any, ...]:
        return Vocabulary, (self.terms.to_pylist(), self.tokenizer)

    @property
    def digest(self) -> str:
        """Compute the SHA-256 over the terms in order, hexadecimal."""
        return hashlib.sha256("\n".join(self.terms.to_pylist()).encode()).hexdigest()

    def spelled(self, numbers: npt.NDArray[np.int32]) -> pa.Array:
        """Return the terms of these ids, large_string."""
        return self.terms.take(pa.array(numbers))

    def look_up(
        self, tokens: Tokens, *, unknown: bool = False
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
        """Look up the known tokens of each text: offsets int64 (n + 1,) and term ids int32.

        With `unknown`, the other tokens are included, as -1.
        """
        result: tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]] = _look_up(
            tokens.data,
            tokens.offsets,
            tokens.starts,
            tokens.ends,
            tokens.hashes,
            self._data,
            self._offsets,
            self.hashes,
            self.slots,
            unknown,
        )
        return result


def is_reachable(terms: pa.Array, tokens: Tokens, tokenizer: Tokenizer) -> npt.NDArray[np.bool_]:
    """Return whether each term (large_string), given its tokens, is its own one and only token."""
    reachable: npt.NDArray[np.bool_] = np.diff(tokens.offsets) == 1
    first = tokens.offsets[:-1][reachable]
    lengths = np.diff(string_buffers(terms)[1])
    reachable[reachable] = (tokens.ends - tokens.starts)[first] == lengths[reachable]
    reachable &= pc.equal(tokenizer.normalize(terms), terms).to_numpy(zero_copy_only=False)
    return reachable


@compiled
def _build(hashes):  # type: ignore[no-untyped-def]
    size = 2
    while size < 2 * len(hashes):
        size *= 2
    slots = np.full(size, -1, dtype=np.int32)
    mask = np.uint64(size - 1)
    for term in range(len(hashes)):
        slot = hashes[term] & mask
        while slots[slot] >= 0:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = term
    return slots


@compiled
def _look_up(  # type: ignore[no-untyped-def]
    data, token_offsets, starts, ends, hashes, terms, term_offsets, term_hashes, slots, unknown
):
    offsets = np.empty_like(token_offsets)
    ids = np.empty(len(starts), dtype=np.int32)
    mask = np.uint64(len(slots) - 1)
    found = 0
    offsets[0] = 0
    for text in range(len(token_offsets) - 1):
        for token in range(token_offsets[text], token_offsets[text + 1]):
            slot = hashes[token] & mask
            same = False
            while slots[slot] >= 0:
                term = slots[slot]
                # Hashes only pre-select: two words may share one, so the bytes are compared.
                if term_hashes[term] == hashes[token]:
                    first = term_offsets[term]
                    size = term_offsets[term + 1] - first
                    same = size == ends[token] - starts[token]
                    i = 0
                    while same and i < size:
                        same = terms[first + i] == data[starts[token] + i]
                        i += 1
                    if same:
                        break
                slot = (slot + np.uint64(1)) & mask
            if same or unknown:
                ids[found] = slots[slot] if same else -1
                found += 1
        offsets[text + 1] = found
    return offsets, ids[:found].copy()


def distinct_tokens(
    tokens: Tokens,
) -> tuple[pa.Array, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the distinct tokens of a batch, large_string (m,), and those that each text holds.

    Text i holds those at numbers[offsets[i] : offsets[i + 1]], each once; both arrays are int64.
    """
    words = pa.LargeStringArray.from_buffers(
        len(tokens.starts), *_gather(tokens.data, tokens.starts, tokens.ends)
    ).dictionary_encode()
    codes = words.indices.to_numpy().astype(np.int64)
    texts = np.repeat(np.arange(len(tokens.offsets) - 1), np.diff(tokens.offsets))
    texts, numbers = np.divmod(
        np.unique(texts * max(1, len(words.dictionary)) + codes), max(1, len(words.dictionary))
    )
    return words.dictionary, np.searchsorted(texts, np.arange(len(tokens.offsets))), numbers


def document_frequencies(tokens: Tokens) -> tuple[pa.Array, npt.NDArray[np.int64]]:
    """Count the texts that hold each distinct token of a batch; return tokens and counts.

    The tokens are large_string.
    """
    words, _, numbers = distinct_tokens(tokens)
    return words, np.bincount(numbers, minlength=len(words))


def _gather(
    data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]
) -> tuple[pa.Buffer, pa.Buffer]:
    offsets = np.concatenate([[0], np.cumsum(ends - starts)]).astype(np.int64)
    return pa.py_buffer(offsets), pa.py_buffer(_copy_spans(data, starts, offsets))


@compiled
def _copy_spans(data, starts, offsets):  # type: ignore[no-untyped-def]
    copied = np.empty(offsets[-1], dtype=np.uint8)
    for span in range(len(starts)):
        for i in range(offsets[span + 1] - offsets[span]):
            copied[offsets[span] + i] = data[starts[span] + i]
    return copied
