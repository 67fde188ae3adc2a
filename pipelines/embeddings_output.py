"""The files of a release of word embeddings: vectors in four forms, the vocabulary, an index."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from indexes.vectors import WordVectors
from indexes.vectors.writing import as_binary, as_text
from indexes.vocabulary import Vocabulary
from pipelines import card, index, storage
from transforms.errors import InputError
from transforms.shards import Written, write_content, write_tables
from transforms.vocabulary import vocabulary_table

TABLE, TEXT, BINARY, INDEX = "vectors.parquet", "vectors.txt", "vectors.bin", "index"


def write_embeddings(
    words: Sequence[str],
    vectors: npt.NDArray[np.float32],
    promise: card.GuaranteePart,
    staging: str,
) -> list[Written]:
    """Write the vectors, float32 (n, d), of n words, and under which promise they were made.

    Raises InputError where no index can be made of them.
    """
    rows = len(words)
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
    table = pa.table({"word": pa.array(words, pa.string()), "vector": column})
    terms = vocabulary_table(Vocabulary(words), None)
    binary = as_binary(words, vectors)
    return [
        write_tables([table], table.schema, TABLE, staging),
        write_tables([terms], terms.schema, storage.VOCABULARY, staging),
        write_content(as_text(words, vectors), rows, TEXT, staging),
        write_content(binary, rows, BINARY, staging),
        *_index(WordVectors(list(words), vectors), stated(promise), binary, staging),
    ]


def stated(promise: card.GuaranteePart) -> dict[str, Any]:
    """What an index says of the guarantee under which its vectors were made."""
    return promise.model_dump(
        mode="json", include={"definition", "unit", "parameters", "statement"}
    )


def _index(
    vectors: WordVectors, guarantee: dict[str, Any], binary: bytes, staging: str
) -> Iterator[Written]:
    source = {"uri": BINARY, "sha256": hashlib.sha256(binary).hexdigest()}
    with tempfile.TemporaryDirectory() as folder:
        try:
            index.write(folder, vectors, "private", guarantee, source)
        except ValueError as error:
            raise InputError(
                f"mechanism: what was made of the corpus {error}; give a larger epsilon, more "
                "users or another vocabulary"
            ) from None
        for name in sorted(os.listdir(folder)):
            with open(f"{folder}/{name}", "rb") as stream:
                content = stream.read()
            yield write_content(content, len(vectors.words), f"{INDEX}/{name}", staging)
