"""Embeddings of texts by their words, in whole numbers: latent semantic analysis of public texts.

terms.arrow       an Arrow file with the column `term`, large_string, V rows
word_vectors.npy  int16 (V, d): each term's vector

A text's embedding is the sum of the vectors of its distinct terms. They come from the singular
value decomposition of the public texts' matrix of terms, weighted by their rarity (Deerwester et
al., JASIS 1990), with every direction divided by its singular value: else the first one, which all
texts share, would decide which texts are near.

The vectors are rounded to whole numbers once, and all that follows is in whole numbers. So an
embedding depends on its text alone, bit by bit, on every machine and in any company.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from quietcorpus.compiled import compiled

from ..tokens.tokenizer import Tokens
from ..tokens.tokenizers import UNICODE_WORDS, Tokenizer
from ..tokens.vocabulary import Vocabulary, document_frequencies, is_reachable

NAME = "lsa"
"""The name by which this encoder is asked for."""
TERMS, WORD_VECTORS = "terms.arrow", "word_vectors.npy"
FILES = TERMS, WORD_VECTORS
DIMENSIONS = 200
"""The length of an embedding, if there are `_SHARE` times as many texts and terms."""
LEAST_TEXTS = 5
"""The fewest texts that hold a term."""
MOST_TERMS = 50_000
_SHARE = 5  # texts of a direction: with as many directions as texts, none would be near another
_LARGEST = 2**15 - 1
_BITS = 20
"""The size of an embedding's numbers: sums of squares of 8,192 of them are exact in float64."""
_SCHEMA = pa.schema([pa.field("term", pa.large_string())])


class TooFewTexts(ValueError):
    """Texts that are too few, or have too few terms in common, for an analysis."""


@dataclass(frozen=True, eq=False)
class Lsa:
    """An encoder of texts, whose vectors may be mapped from a file."""

    vocabulary: Vocabulary
    vectors: npt.NDArray[np.int16]

    @cached_property
    def description(self) -> Mapping[str, Any]:
        """Return a manifest's description of the encoder; `sha256` covers terms and vectors."""
        whole = hashlib.sha256(self.vocabulary.digest.encode())
        whole.update(self.vectors.astype("<i2").tobytes())
        return {
            "name": NAME,
            "sha256": whole.hexdigest(),
            "dimensions": self.vectors.shape[1],
            "tokenizer": self.vocabulary.tokenizer.law,
        }

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Compute the embedding of every text, float32 (n, d), of whole numbers up to 2^20.

        A text without a known term has zeros.
        """
        tokens = self.vocabulary.tokenizer.tokenize(pa.array(texts, pa.large_string()))
        offsets, terms = self.vocabulary.look_up(tokens)
        return shortened(_sums(offsets, terms, self.vectors), _BITS).astype(np.float32)


def shortened(sums: npt.NDArray[np.int64], bits: int) -> npt.NDArray[np.int64]:
    """Drop the last bits of each row's whole numbers, so that its largest has `bits` of them.

    All numbers of `sums` (n, d) are below 2^53.
    """
    # The exponent of such a number is the number of its bits, exactly.
    largest = np.frexp(np.abs(sums).max(axis=1, initial=0).astype(np.float64))[1]
    found: npt.NDArray[np.int64] = sums >> np.maximum(0, largest - bits)[:, None]
    return found


@compiled
def _sums(offsets, terms, vectors):  # type: ignore[no-untyped-def]
    """Add up the vectors of each text's distinct terms: int64 (n, d)."""
    texts, dimensions = len(offsets) - 1, vectors.shape[1]
    sums = np.zeros((texts, dimensions), dtype=np.int64)
    for text in range(texts):
        last = -1
        for term in np.sort(terms[offsets[text] : offsets[text + 1]]):
            if term != last:
                for i in range(dimensions):
                    sums[text, i] += vectors[term, i]
            last = term
    return sums


def fit(texts: pa.Array, dimensions: int = DIMENSIONS, tokenizer: Tokenizer = UNICODE_WORDS) -> Lsa:
    """Make an encoder of public texts, a string array without nulls.

    Raises TooFewTexts unless two texts and two terms can be used.
    """
    # Here, since workers do not fit encoders.
    from scipy import sparse
    from scipy.sparse.linalg import svds

    tokens = tokenizer.tokenize(texts)
    vocabulary = _frequent(tokens, tokenizer)
    offsets, terms = vocabulary.look_up(tokens)
    shape = len(texts), len(vocabulary)
    if min(shape) < 2:
        raise TooFewTexts("an analysis takes two texts or more")
    matrix = sparse.csr_matrix((np.ones(len(terms)), terms, offsets), shape)
    matrix.sum_duplicates()
    matrix.data[:] = 1
    frequencies = np.bincount(matrix.indices, minlength=len(vocabulary))
    rarity = 1 + np.log((1 + len(texts)) / (1 + frequencies))
    lengths = np.sqrt(matrix @ rarity**2)
    weighted = sparse.diags(1 / np.maximum(1, lengths)) @ matrix @ sparse.diags(rarity)
    # The iteration starts at a fixed vector, so that it repeats itself on one machine.
    size = min(dimensions, max(1, min(shape) // _SHARE))
    _, strengths, directions = svds(weighted, k=size, v0=np.ones(min(shape)))
    # Texts may be of fewer dimensions than were asked for.
    real = strengths > 1e-6 * strengths.max()
    vectors = rarity[:, None] * (directions[real].T / strengths[real])
    rounded = np.rint(vectors / np.abs(vectors).max() * _LARGEST)
    return Lsa(vocabulary, np.ascontiguousarray(rounded, np.int16))


def _frequent(tokens: Tokens, tokenizer: Tokenizer) -> Vocabulary:
    """Return the terms of enough texts, in alphabetical order; raise TooFewTexts for none or one.

    If they are too many, those of the most texts are returned.
    """
    words, frequencies = document_frequencies(tokens)
    reachable = is_reachable(words, tokenizer.spelled(words), tokenizer)
    usable = (frequencies >= LEAST_TEXTS) & reachable
    words = words.filter(pa.array(usable)).to_pylist()
    if len(words) < 2:
        raise TooFewTexts(f"an analysis takes two terms or more, each in {LEAST_TEXTS} texts")
    ranked = sorted(zip((-frequencies[usable]).tolist(), words, strict=True))
    return Vocabulary(sorted(word for _, word in ranked[:MOST_TERMS]), tokenizer)


def save(path: str, encoder: Lsa) -> None:
    """Write an encoder's files into a folder."""
    np.save(f"{path}/{WORD_VECTORS}", encoder.vectors)
    with pa.OSFile(f"{path}/{TERMS}", "wb") as sink, pa.ipc.new_file(sink, _SCHEMA) as writer:
        writer.write_table(pa.table([encoder.vocabulary.terms], schema=_SCHEMA))


def mapped(path: str, tokenizer: Tokenizer = UNICODE_WORDS) -> Lsa:
    """Map an encoder's files into memory; damaged ones raise errors of many kinds."""
    vectors = np.load(f"{path}/{WORD_VECTORS}", mmap_mode="r", allow_pickle=False)
    terms = pa.ipc.open_file(pa.memory_map(f"{path}/{TERMS}")).read_all()
    vocabulary = Vocabulary(terms["term"].to_pylist(), tokenizer)
    if (
        vectors.dtype != np.dtype("<i2")
        or vectors.ndim != 2
        or len(vectors) != len(vocabulary)
        or not vectors.flags.c_contiguous
    ):
        raise ValueError
    return Lsa(vocabulary, vectors)
