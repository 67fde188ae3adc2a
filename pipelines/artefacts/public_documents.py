"""Public documents for candidates and for calibration: whole, or a sample by sentences."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import count
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from quietcorpus.indexes.sentences import split
from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.reading.documents import Corpus
from quietcorpus.transforms.reading.sources import plan, read


class PublicDocuments(NamedTuple):
    """Public documents: all their sentences, and the offset of each document's first one."""

    sentences: list[str]
    offsets: npt.NDArray[np.int64]


def chosen(
    corpus: Corpus,
    language: str,
    least: int,
    most: int,
    wanted: int,
    generator: np.random.Generator,
) -> PublicDocuments:
    """Draw a uniform sample of the documents of at least so many sentences, in random order."""
    kept: list[tuple[float, int, list[str]]] = []
    number = count()
    for sentences in _split(corpus, language, max(least, most)):
        if len(sentences) >= least:
            # Each document gets a uniform number; the heap keeps those with the smallest ones.
            item = (-generator.random(), next(number), sentences[:most])
            if len(kept) < wanted:
                heapq.heappush(kept, item)
            else:
                heapq.heappushpop(kept, item)
    if len(kept) < wanted:
        raise InputError(
            f"source: {corpus.pattern} has {len(kept)} documents of {least} sentences or more, and "
            f"{wanted} are needed; give more documents, or ask for less"
        )
    sample = [sentences for _, _, sentences in sorted(kept)]
    offsets = np.cumsum([0, *map(len, sample)])
    return PublicDocuments([one for sentences in sample for one in sentences], offsets)


def _split(corpus: Corpus, language: str, most: int) -> Iterator[list[str]]:
    for own in texts(corpus):
        found = split(own.to_pylist(), most, language)
        for start, end in zip(found.offsets, found.offsets[1:], strict=False):
            yield found.texts[start:end]


def texts(corpus: Corpus) -> Iterator[pa.LargeStringArray]:
    """Yield all documents, some at a time; raises InputError for what cannot be read."""
    try:
        for part in plan(corpus).splits:
            for documents in read(part, corpus):
                yield documents.texts
    except InputError as error:  # it names keys of a spec, and there are only arguments here
        said = str(error).replace("input.path:", "source:", 1).replace("input.text:", "text:", 1)
        raise InputError(said) from None
