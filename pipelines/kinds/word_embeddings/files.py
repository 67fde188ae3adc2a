"""The files of a release of word embeddings: vectors in four forms, the vocabulary, an index."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from quietcorpus.indexes.tokens.tokenizers import Tokenizer
from quietcorpus.indexes.tokens.vocabulary import Vocabulary
from quietcorpus.indexes.vectors import WordVectors
from quietcorpus.indexes.vectors.word2vec import as_binary, as_text
from quietcorpus.indexes.words.word_index import contents
from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.transforms.errors import NoisyOutcome
from quietcorpus.transforms.run_files import staged_table
from quietcorpus.transforms.shards import Written, write_content, write_tables
from quietcorpus.transforms.vocabulary import vocabulary_table

from ...card import model as card
from ...card import statements
from ...prepare import word_index
from ...storage import layout
from ...storage.layout import BINARY, INDEX, TABLE, TEXT


def words_in(files: Sequence[Written], key: ReleaseKey) -> list[str]:
    """Read the words of the vocabulary that the pipeline wrote."""
    (table,) = (file for file in files if file.path == layout.VOCABULARY)
    words: list[str] = staged_table(table, key)["term"].to_pylist()
    return words


def write_embeddings(
    words: Sequence[str],
    vectors: npt.NDArray[np.float32],
    promise: card.GuaranteePart,
    tokenizer: Tokenizer,
    staging: str,
    key: ReleaseKey,
) -> list[Written]:
    """Write the vectors, float32 (n, d), of n words, and the promise under which they were made.

    Raises NoisyOutcome if no index can be made from them.
    """
    rows = len(words)
    table = vectors_table(words, vectors)
    terms = vocabulary_table(Vocabulary(words, tokenizer), None)
    binary = as_binary(words, vectors)
    written = [
        write_tables([table], table.schema, TABLE, staging, key),
        write_tables([terms], terms.schema, layout.VOCABULARY, staging, key),
        write_content(as_text(words, vectors), rows, TEXT, staging, key),
        write_content(binary, rows, BINARY, staging, key),
        *_index(
            WordVectors(list(words), vectors),
            statements.stated(promise),
            binary,
            tokenizer,
            staging,
            key,
        ),
    ]
    return sorted(written, key=lambda file: file.path)


def vectors_table(words: Sequence[str], vectors: npt.NDArray[np.float32]) -> pa.Table:
    """Build the table of `vectors.parquet`."""
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
    return pa.table({"word": pa.array(words, pa.string()), "vector": column})


def _index(
    vectors: WordVectors,
    guarantee: dict[str, Any],
    binary: bytes,
    tokenizer: Tokenizer,
    staging: str,
    key: ReleaseKey,
) -> Iterator[Written]:
    source = {"uri": BINARY, "sha256": hashlib.sha256(binary).hexdigest()}
    try:
        made = word_index.make(vectors, "private", guarantee, source, tokenizer=tokenizer)
    except ValueError as error:
        raise NoisyOutcome(
            f"mechanism: what was made of the corpus {error}; give a larger epsilon, more users or "
            "another vocabulary"
        ) from None
    for name, content in contents(made):
        yield write_content(content, len(vectors.words), f"{INDEX}/{name}", staging, key)
