"""What `verify` asks of word embeddings: the same vectors in every file, and an honest index."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from indexes.vectors import VectorsError, read
from pipelines import storage
from pipelines.card import Card
from pipelines.embeddings_output import BINARY, INDEX, TABLE, TEXT, stated
from transforms.errors import InputError
from transforms.word_index import IndexSource

TABLES = {TABLE: ["word", "vector"], storage.VOCABULARY: ["term_id", "term", "weight"]}
OTHERS = (TEXT, BINARY, f"{INDEX}/")
"""What the paths of the files that are no tables begin with."""


def check(output: str, card: Card) -> None:
    """Raise InputError unless all files are there, agree, and the index tells its cost."""
    uri = f"{output}/{storage.CARD}"
    paths = [file.path for file in card.files]
    for path in (*TABLES, TEXT, BINARY, f"{INDEX}/manifest.json"):
        if path not in paths:
            raise InputError(f"{uri}: files: {path} is missing")
    index = IndexSource.found("index", f"{output}/{INDEX}").open()
    table, terms = _read(f"{output}/{TABLE}"), _read(f"{output}/{storage.VOCABULARY}")
    words = table["word"].to_pylist()
    values = np.array(table["vector"].to_pylist(), dtype=np.float32)
    found: list[tuple[str, list[str], Any]] = [
        (INDEX, index.vocabulary.terms.to_pylist(), index.vectors),
        (storage.VOCABULARY, terms["term"].to_pylist(), values),
    ]
    for path in (TEXT, BINARY):
        content = storage.read_bytes(f"{output}/{path}")
        try:
            vectors = read(path, {path: io.BytesIO(content)}.__getitem__)
        except VectorsError as error:
            raise InputError(f"{output}/{path}: {error}") from None
        found.append((path, vectors.words, vectors.values))
    for path, own, vectors in found:
        if own != words or not np.array_equal(vectors, values):
            raise InputError(f"{output}/{path}: not the words and vectors of {TABLE}")
    if (index.manifest.provenance, index.manifest.guarantee) != ("private", stated(card.guarantee)):
        raise InputError(f"{output}/{INDEX}: does not say what it cost as {storage.CARD} does")


def _read(uri: str) -> pa.Table:
    # A thread of `pq.read_table` may let go of the content while the interpreter ends, and abort.
    return pq.ParquetFile(pa.BufferReader(storage.read_bytes(uri))).read(use_threads=False)
