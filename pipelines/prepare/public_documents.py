"""Public documents for candidates and for calibration: whole, or a sample by sentences."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator
from itertools import count, pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from quietcorpus.indexes.tokens.segmentation import split
from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.reading import sources
from quietcorpus.transforms.reading.documents import Corpus, Documents


class PublicDocuments(NamedTuple):
    """Public documents: all their sentences, the offset of each one's first, and other columns.

    `texts` are whole.
    """

    sentences: list[str]
    offsets: npt.NDArray[np.int64]
    columns: pa.Table
    texts: pa.LargeStringArray


def chosen(
    corpus: Corpus,
    language: str,
    least: int,
    most: int,
    wanted: int,
    generator: np.random.Generator,
) -> PublicDocuments:
    """Draw a uniform sample of the documents of at least `least` sentences, in random order."""
    kept: list[tuple[float, int, list[str], pa.Table, pa.Array]] = []
    number = count()
    for sentences, columns, texts, row in _split(corpus, language, max(least, most)):
        if len(sentences) >= least:
            # Each document gets a uniform number; the heap keeps those with the smallest ones.
            # Its row is taken and not sliced: a slice would keep the whole batch in memory.
            own = columns.take([row]), texts.take([row])
            item = (-generator.random(), next(number), sentences[:most], *own)
            if len(kept) < wanted:
                heapq.heappush(kept, item)
            else:
                heapq.heappushpop(kept, item)
    if len(kept) < wanted:
        raise InputError(
            f"source: {corpus.pattern} has {len(kept)} documents of {least} sentences or more, and "
            f"{wanted} are needed; give more documents, or ask for less"
        )
    sample = sorted(kept)
    offsets = np.cumsum([0, *(len(sentences) for _, _, sentences, *_ in sample)])
    whole = [one for _, _, sentences, *_ in sample for one in sentences]
    rows = pa.concat_tables([columns for *_, columns, _ in sample]).combine_chunks()
    texts = pa.concat_arrays([text for *_, text in sample])
    return PublicDocuments(whole, offsets, rows, texts)


def _split(
    corpus: Corpus, language: str, most: int
) -> Iterator[tuple[list[str], pa.Table, pa.LargeStringArray, int]]:
    """Yield the sentences of each document, and all columns and texts with its row's number."""
    for documents in batches(corpus):
        found = split(documents.texts.to_pylist(), most, language)
        for row, (start, end) in enumerate(pairwise(found.offsets)):
            yield found.texts[start:end], documents.columns, documents.texts, row


def texts(corpus: Corpus) -> Iterator[pa.LargeStringArray]:
    """Yield all documents, some at a time; raises InputError as `batches` does."""
    for documents in batches(corpus):
        yield documents.texts


def batches(corpus: Corpus) -> Iterator[Documents]:
    """Yield all documents with their columns; raises InputError for what cannot be read."""
    try:
        yield from sources.batches(corpus)
    except InputError as error:  # it names keys of a spec, and there are only arguments here
        said = str(error).replace("input.path:", "source:", 1)
        raise InputError(re.sub(r"^input\.(text|id|keep):", r"\1:", said)) from None
